// ADD, the runtime's own op, where it adds to a binary convolution: claimed with it, as the two are one in the kernels.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/platform/thread_pool.h"
#include "tflite/runtime/abi.h"

namespace litebnn {

struct OpType;

// The sum of two float32 tensors. Their shapes are one in the model, and may be others once inputs have been resized:
// then dimensions of 1, and those left out in front, are repeated as in the runtime's ADD.
class BroadcastSum {
 public:
  // Sets the sum's shape, which may hold more than INT32_MAX values. False where the shapes do not go together.
  bool Resize(const std::vector<int32_t>& first, const std::vector<int32_t>& second, std::vector<int32_t>* sum);
  void Run(ThreadPool& pool, const float* first, const float* second, bool rectify, float* sum) const;

 private:
  struct Axis {
    int64_t size, first_stride, second_stride;  // 0: repeated
  };
  std::vector<Axis> axes_;  // innermost first; neighbours that can be walked as one are one
  int64_t values_ = 0;
};

// The op for a node that adds two float32 tensors of one shape, neither of them a constant, with no activation or RELU.
// Null for any other node.
const OpType* FindAddition(const TfLiteContext& context, const TfLiteRegistration& registration,
                           const TfLiteNode& node);

}  // namespace litebnn
