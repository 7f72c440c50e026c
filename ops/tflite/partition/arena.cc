#include "tflite/partition/arena.h"

#include <algorithm>
#include <limits>

namespace litebnn {
namespace {

constexpr size_t kMaxBytes = std::numeric_limits<size_t>::max() / 2;

bool InUseTogether(const ArenaBuffer& a, const ArenaBuffer& b) { return a.first <= b.last && b.first <= a.last; }

}  // namespace

bool PlanArena(std::vector<ArenaBuffer>* buffers, size_t* total_bytes) {
  std::vector<ArenaBuffer*> by_size;
  for (ArenaBuffer& buffer : *buffers) by_size.push_back(&buffer);
  std::stable_sort(by_size.begin(), by_size.end(),
                   [](const ArenaBuffer* a, const ArenaBuffer* b) { return a->bytes > b->bytes; });

  *total_bytes = 0;
  std::vector<const ArenaBuffer*> by_offset;
  for (ArenaBuffer* buffer : by_size) {
    size_t offset = 0;
    for (const ArenaBuffer* placed : by_offset) {
      if (!InUseTogether(*buffer, *placed)) continue;
      if (placed->offset >= offset && placed->offset - offset >= buffer->bytes) break;
      offset = std::max(offset, AlignUp(placed->offset + placed->bytes));
    }
    if (buffer->bytes > kMaxBytes || offset > kMaxBytes - buffer->bytes) return false;
    buffer->offset = offset;
    *total_bytes = std::max(*total_bytes, offset + buffer->bytes);
    const auto position = std::upper_bound(by_offset.begin(), by_offset.end(), buffer,
                                           [](const auto* a, const auto* b) { return a->offset < b->offset; });
    by_offset.insert(position, buffer);
  }
  return true;
}

bool Arena::Reserve(size_t bytes) { return bytes <= capacity() || block_.Allocate(bytes); }

}  // namespace litebnn
