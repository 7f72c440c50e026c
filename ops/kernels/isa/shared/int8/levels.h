// The file computes int8 outputs, several vectors at a time.
#pragma once

#include <cstdint>

#include "kernels/isa/isa.h"

namespace litebnn {
// Functions have internal linkage here, so that the linker does not merge copies that are compiled for different CPUs.
namespace {

// The class rounds floats to int8 values, as Int8Epilogue in shared/output.h does. If kAdds is true, the class then
// adds the values of an int8 tensor by a FloatSum (kernels.h). This FloatSum must have no exceptions, which are
// operands whose sum needs a correction. If kFuses is true, the sum uses fused multiply-adds. If kMayTie is false, no
// value is halfway between two integers, so that rounding halves to even gives the same result in less time.
//
// The class `Lanes` has these members beside those of OneLane (shared/lanes.h):
// - AddHalf adds the largest float below one half, with the sign of each value, to the values.
// - Truncate and ToInts drop the fraction, Nearest and ToNearest round halves to even.
// - Truncate and Nearest return floats, ToInts and ToNearest return integers.
// - MultiplyAdd(a, b, c) returns a * b + c, rounded once.
// - LevelBytes adds a zero point to vectors of integers, clamps the sums, and stores them as bytes.
template <typename Lanes, bool kAdds, bool kFuses, bool kMayTie>
struct Levels {
  using Floats = typename Lanes::Floats;
  using Ints = typename Lanes::Ints;

  const Floats low, high, first_scale, second_scale, offset;
  const Ints second_zero_point;
  const typename Lanes::LevelBytes bytes;
  const int8_t* const addend;
  int8_t* const output;

  explicit Levels(const BconvTask& task) : Levels(task, task.epilogue.int8_sum) {}
  Levels(const BconvTask& task, const FloatSum& sum)
      : low(Lanes::Set(static_cast<float>(-128 - task.zero_point))),
        high(Lanes::Set(static_cast<float>(127 - task.zero_point))),
        first_scale(Lanes::Set(sum.first_scale)),
        second_scale(Lanes::Set(sum.second_scale)),
        offset(Lanes::Set(-static_cast<float>(sum.second_zero_point) * sum.second_scale)),
        second_zero_point(Lanes::Set(sum.second_zero_point)),
        bytes(kAdds ? sum.zero_point : task.zero_point, kAdds ? sum.low + sum.zero_point : -128,
              kAdds ? sum.high + sum.zero_point : 127),
        addend(task.epilogue.int8_addend),
        output(static_cast<int8_t*>(task.output)) {}

  // Applies an operation to kVectors vectors. The loop interleaves them, because the operations on one vector depend on
  // each other, and the CPU would have to wait for each result.
  template <int kVectors, typename Function>
  __attribute__((always_inline)) static void ForEach(Function function) {
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) function(i);
  }

  // Returns the address of the int8 values that are added to the outputs from position `index` on, or null.
  const int8_t* AddendOf(int64_t index) const { return kAdds ? addend + index : nullptr; }

  // Adds the int8 values at `added` to `values`. Neither `values` nor the added numbers include a zero point.
  template <int kVectors>
  __attribute__((always_inline)) void Add(Floats (&values)[kVectors], const int8_t* added) const {
    Floats second[kVectors];
    ForEach<kVectors>([&](int i) { values[i] = kMayTie ? Lanes::Truncate(values[i]) : Lanes::Nearest(values[i]); });
    ForEach<kVectors>([&](int i) {
      const Ints level = Lanes::LoadBytes(added + i * Lanes::kLanes, Lanes::kLanes);
      second[i] = Lanes::ToFloats(kFuses ? level : Lanes::Subtract(level, second_zero_point));
    });
    if (kFuses) {
      ForEach<kVectors>([&](int i) { second[i] = Lanes::MultiplyAdd(second[i], second_scale, offset); });
      ForEach<kVectors>([&](int i) { values[i] = Lanes::MultiplyAdd(values[i], first_scale, second[i]); });
    } else {
      ForEach<kVectors>([&](int i) { second[i] = Lanes::Multiply(second[i], second_scale); });
      ForEach<kVectors>([&](int i) { values[i] = Lanes::Add(Lanes::Multiply(values[i], first_scale), second[i]); });
      ForEach<kVectors>([&](int i) { values[i] = Lanes::AddHalf(values[i]); });
    }
  }

  // Writes the int8 outputs of several vectors of values, in the order of their channels, to `outputs`. If the class
  // adds a tensor, its values for these channels begin at `added`.
  template <int kVectors>
  __attribute__((always_inline)) void Write(Floats (&values)[kVectors], const int8_t* added, int8_t* outputs) const {
    ForEach<kVectors>([&](int i) { values[i] = Lanes::Clamp(values[i], low, high); });
    if (kMayTie) ForEach<kVectors>([&](int i) { values[i] = Lanes::AddHalf(values[i]); });
    if (kAdds) Add(values, added);
    Ints levels[kVectors];
    ForEach<kVectors>([&](int i) { levels[i] = kFuses ? Lanes::ToNearest(values[i]) : Lanes::ToInts(values[i]); });
    bytes.Store(levels, outputs);
  }
};

// Calls body(levels) with the Levels of a task for int8 outputs, and returns its result. If the task adds an int8
// tensor, its FloatSum must have no exceptions.
template <typename Lanes, typename Body>
__attribute__((always_inline)) inline auto WithLevels(const BconvTask& task, Body body) {
  // Without a sum, faster rounding would save less than the code of another version costs.
  if (task.epilogue_kind == EpilogueKind::kInt8) return body(Levels<Lanes, false, false, true>(task));
  if (!task.epilogue.int8_sum.may_fuse) return body(Levels<Lanes, true, false, true>(task));
  return task.may_tie ? body(Levels<Lanes, true, true, true>(task)) : body(Levels<Lanes, true, true, false>(task));
}

}  // namespace
}  // namespace litebnn
