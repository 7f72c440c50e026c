// The file declares sums of two tensors, which are broadcast if their shapes differ.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/platform/thread_pool.h"
#include "tflite/runtime/node.h"

namespace litebnn {

// A sum that broadcasts its operands as the runtime's ADD does. The shapes of the operands are equal in most models,
// but may differ after inputs are resized.
class BroadcastSum {
 public:
  // Sets the sum's shape, which may have more than INT32_MAX values. Returns false if the shapes cannot be broadcast.
  bool Resize(const std::vector<int32_t>& first, const std::vector<int32_t>& second, std::vector<int32_t>* sum);
  void Run(ThreadPool& pool, const float* first, const float* second, bool rectify, float* sum) const;
  // Computes sum = add(first, second) for each pair of values.
  template <typename T, typename Add>
  void Run(ThreadPool& pool, const T* first, const T* second, T* sum, Add add) const {
    ParallelFor(pool, {values_, kGrain, kCyclesPerSum}, [&](int, int64_t begin, int64_t end) {
      const Axis& row = axes_[0];
      for (int64_t count; begin < end; begin += count) {
        const T *a = first, *b = second;
        int64_t quotient = begin;
        for (const Axis& axis : axes_) {
          const int64_t index = quotient % axis.size;
          quotient /= axis.size;
          a += index * axis.first_stride;
          b += index * axis.second_stride;
        }
        count = std::min(row.size - begin % row.size, end - begin);
        for (int64_t i = 0; i < count; ++i) sum[begin + i] = add(a[i * row.first_stride], b[i * row.second_stride]);
      }
    });
  }

 private:
  struct Axis {
    int64_t size, first_stride, second_stride;  // a stride of 0 broadcasts
  };
  // The estimated cycles for each sum, and the grain of the loop, which ensures that only one thread writes each cache
  // line of the output.
  static constexpr double kCyclesPerSum = 0.5;
  static constexpr int64_t kGrain = 64;
  std::vector<Axis> axes_;  // innermost first; contiguous dimensions are merged
  int64_t values_ = 0;
};

// Sets `*reserved` to the number of bytes that an intermediate image of `bytes` bytes takes in the workspace, which is
// a multiple of the alignment. If the number is more than a quarter of the address space, reports an error and returns
// false.
bool ReserveImage(const Node& node, size_t bytes, size_t* reserved);

// An ADD that is fused into another op. If both operands have the same shape, that op adds while it writes its output.
// Otherwise that op writes its result to the workspace, and the sum is computed afterwards.
class FusedSum {
 public:
  // The node's output must have the shape of the op's result. If the node has an addend (the input at `position`), the
  // output gets the shape of the sum of both. Returns false after reporting an error.
  bool Resize(const Node& node, size_t position);
  bool has_addend() const { return has_addend_; }
  bool rectifies() const { return rectifies_; }
  // The bytes that the result of the op before the ADD takes in the workspace. The number is 0 if that op adds while it
  // writes its output.
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
