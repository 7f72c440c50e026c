// One block of memory for buffers that are in use at different times.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/platform/aligned_buffer.h"

namespace litebnn {

// A buffer that is in use from step `first` to step `last`, both included.
struct ArenaBuffer {
  size_t bytes;
  int first, last;
  size_t offset;  // set by PlanArena
};

// Assigns each buffer an offset, a multiple of kAlignment, so that buffers in use at the same step do not overlap. The
// algorithm places the largest buffer first, each at the lowest free offset. Source: Pisarchyk and Lee, "Efficient
// Memory Management for Deep Neural Net Inference", 2020. Returns false if the total does not fit in size_t.
bool PlanArena(std::vector<ArenaBuffer>* buffers, size_t* total_bytes);

// Memory shared by partitions that run one after the other; its contents are not kept between them.
class Arena {
 public:
  // Grows the memory to at least `bytes`, without keeping the contents. If memory runs out, returns false and holds
  // nothing.
  bool Reserve(size_t bytes);
  std::byte* data() { return block_.data(); }
  size_t capacity() const { return block_.bytes(); }

 private:
  AlignedBuffer<std::byte> block_;
};

}  // namespace litebnn
