// ADD, the runtime's own op, where it adds to a binary convolution: claimed with it, as the two are one in the kernels.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/thread_pool.h"
#include "tflite/abi.h"

namespace litebnn {

struct OpType;

// The sum of two float32 tensors, the shorter dimensions repeated as NumPy's broadcasting does.
class BroadcastSum {
 public:
  // Sets the shape of the sum, which may have more than INT32_MAX values. False where the shapes do not go together.
  bool Resize(const std::vector<int32_t>& first, const std::vector<int32_t>& second, std::vector<int32_t>* sum);
  void Run(ThreadPool& pool, const float* first, const float* second, bool rectify, float* sum) const;

 private:
  struct Axis {
    int64_t size, first_stride, second_stride;  // 0: repeated
  };
  std::vector<Axis> axes_;  // neighbours that both tensors walk alike are one
};

// The op for a node that adds two float32 tensors of one shape, neither of them a constant, with no activation or RELU.
// Null for any other node.
const OpType* FindAddition(const TfLiteContext& context, const TfLiteRegistration& registration,
                           const TfLiteNode& node);

}  // namespace litebnn
