#include "tflite/partition/arena.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace litebnn {
namespace {

// The number of buffers after which further ones are appended without a search for a gap, because the search takes
// quadratic time. No sensible model has so many buffers.
constexpr size_t kMaxFitted = 4096;
constexpr size_t kMaxBytes = std::numeric_limits<size_t>::max() / 2;

bool InUseTogether(const ArenaBuffer& a, const ArenaBuffer& b) { return a.first <= b.last && b.first <= a.last; }

// The lowest offset at which `buffer` overlaps no buffer that is in use at the same time.
size_t LowestFree(const ArenaBuffer& buffer, const std::vector<const ArenaBuffer*>& by_offset) {
  size_t offset = 0;
  for (const ArenaBuffer* placed : by_offset) {
    if (!InUseTogether(buffer, *placed)) continue;
    if (placed->offset >= offset && placed->offset - offset >= buffer.bytes) break;
    offset = std::max(offset, AlignUp(placed->offset + placed->bytes));
  }
  return offset;
}

// The first buffer, in the order of offsets, that begins after `buffer`.
auto FindNext(const ArenaBuffer& buffer, const std::vector<const ArenaBuffer*>& by_offset) {
  return std::find_if(by_offset.begin(), by_offset.end(),
                      [&](const ArenaBuffer* placed) { return placed->offset > buffer.offset; });
}

}  // namespace

bool PlanArena(std::vector<ArenaBuffer>* buffers, size_t* total_bytes) {
  std::vector<ArenaBuffer*> by_size;
  for (ArenaBuffer& buffer : *buffers) by_size.push_back(&buffer);
  std::sort(by_size.begin(), by_size.end(), [](const ArenaBuffer* a, const ArenaBuffer* b) {
    return a->bytes != b->bytes ? a->bytes > b->bytes : std::less<>()(a, b);
  });

  *total_bytes = 0;
  std::vector<const ArenaBuffer*> by_offset;
  for (ArenaBuffer* buffer : by_size) {
    const bool is_fitted = by_offset.size() < kMaxFitted;
    const size_t offset = is_fitted ? LowestFree(*buffer, by_offset) : AlignUp(*total_bytes);
    if (buffer->bytes > kMaxBytes || offset > kMaxBytes - buffer->bytes) return false;
    buffer->offset = offset;
    *total_bytes = std::max(*total_bytes, offset + buffer->bytes);
    if (is_fitted) by_offset.insert(FindNext(*buffer, by_offset), buffer);
  }
  return true;
}

bool Arena::Reserve(size_t bytes) { return bytes <= capacity() || block_.Allocate(bytes); }

}  // namespace litebnn
