// The sum of two float32 tensors whose shapes may differ.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/platform/thread_pool.h"

namespace litebnn {

// Their shapes are one in the model, and may be others once inputs have been resized: then dimensions of 1, and those
// left out in front, are repeated as in the runtime's ADD.
class BroadcastSum {
 public:
  // Sets the sum's shape, which may hold more than INT32_MAX values. False where the shapes do not go together.
  bool Resize(const std::vector<int32_t>& first, const std::vector<int32_t>& second, std::vector<int32_t>* sum);
  void Run(ThreadPool& pool, const float* first, const float* second, bool rectify, float* sum) const;

 private:
  struct Axis {
    int64_t size, first_stride, second_stride;  // a stride of 0 repeats
  };
  std::vector<Axis> axes_;  // innermost first; neighbours that can be walked as one are one
  int64_t values_ = 0;
};

}  // namespace litebnn
