// One block of memory for buffers that live at different times.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/platform/aligned_buffer.h"

namespace litebnn {

// A buffer in use from step `first` to step `last`, both included.
struct ArenaBuffer {
  size_t bytes;
  int first, last;
  size_t offset;  // set by PlanArena
};

// Gives every buffer an offset, a multiple of kAlignment, such that buffers in use at the same step do not
// overlap. Largest first, each at the lowest offset that is free (Pisarchyk and Lee, "Efficient Memory Management for
// Deep Neural Net Inference", 2020: greedy by size). False where the total does not fit in size_t.
bool PlanArena(std::vector<ArenaBuffer>* buffers, size_t* total_bytes);

// Memory that those who run one after the other share; what it holds does not last from one to the next.
class Arena {
 public:
  // Makes it at least so large; what it held is lost. False where memory ran out, and it has none then.
  bool Reserve(size_t bytes);
  std::byte* data() { return block_.data(); }
  size_t capacity() const { return block_.bytes(); }

 private:
  AlignedBuffer<std::byte> block_;
};

}  // namespace litebnn
