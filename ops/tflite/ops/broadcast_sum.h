// The sum of two float32 tensors whose shapes may differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/platform/thread_pool.h"
#include "tflite/runtime/node.h"

namespace litebnn {

// Their shapes are one in most models, and may be others once inputs have been resized: dimensions of 1, and those
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

// What an image of `bytes`, of which the node's output is computed, takes of a workspace. False after an error has been
// reported.
bool ReserveImage(const Node& node, size_t bytes, size_t* reserved);

// What an op adds to its own output, by the options of an ADD: while it writes that where the shapes are one, else
// behind it, and then what it has computed lies in its workspace.
class FusedSum {
 public:
  // The node's output has the shape of what is computed and gets that of the sum. Nothing is added where the input at
  // `position` is left out. False after an error has been reported.
  bool Resize(const Node& node, size_t position);
  bool has_addend() const { return has_addend_; }
  bool rectifies() const { return rectifies_; }
  // What is computed, where it lies in the workspace; 0 where it does not.
  size_t computed_bytes() const { return computed_bytes_; }
  void Run(ThreadPool& pool, const float* computed, const float* addend, float* sum) const {
    sum_.Run(pool, computed, addend, rectifies_, sum);
  }

 private:
  bool has_addend_ = false, rectifies_ = false;
  size_t computed_bytes_ = 0;
  BroadcastSum sum_;
};

}  // namespace litebnn
