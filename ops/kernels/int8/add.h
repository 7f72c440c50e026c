// The sum of two int8 images on grids of their own, with the results of TensorFlow Lite's reference kernel.
#pragma once

#include <cstdint>

#include "kernels/int8/requantize.h"

namespace litebnn {

struct Int8Grid {
  float scale;
  int32_t zero_point;
};

struct Int8SumSpec {
  Int8Grid first, second, sum;
  int32_t output_min, output_max;  // the fused activation's bounds
};

// The sum in floating point: the products of both operands, less their zero points, with their scales are added and
// rounded, half away from zero. A few pairs of operands are exceptions, to which one is added. Then the result is
// clamped to [low, high], and the zero point is added.
struct FloatSum {
  static constexpr int32_t kMostExceptions = 3;
  struct Exception {
    int32_t first, second;  // less the zero points
    int32_t difference;     // 1 or -1
  };

  float first_scale, second_scale;
  int32_t second_zero_point, zero_point, low, high;
  int32_t exceptions;
  Exception exception[kMostExceptions];
};

class Int8Sum {
 public:
  // False if the grids differ so much that runtimes refuse them.
  bool Set(const Int8SumSpec& spec);
  int8_t operator()(int8_t first, int8_t second) const;
  // Finds floats that give the same result for every pair of values. All pairs near a tie are checked, as only these
  // can differ. False if there are none nearby.
  bool FindFloatSum(FloatSum* found) const;

 private:
  // The least sums of the operands' values that give each result from `low` to `high`, and one above all sums.
  void FindLeastSums(int32_t low, int32_t high, int32_t* least_sums) const;

  Int8SumSpec spec_ = {};
  FixedPoint scale_ = {};
  int32_t first_[256] = {}, second_[256] = {};  // the operands' values in units of the sum, by level + 128
};

}  // namespace litebnn
