// The floats of a NEON vector, as max_window.h wants them, for both NEON ISAs.
#pragma once

#include <arm_neon.h>

#include <cstdint>

namespace litebnn {
// Every ISA's file has its own copy, compiled for its own CPU.
namespace {

struct FourFloats {
  using Vector = float32x4_t;
  static constexpr int32_t kCount = 4;
  static Vector Set(float value) { return vdupq_n_f32(value); }
  static Vector Load(const float* values) { return vld1q_f32(values); }
  static void Store(Vector vector, float* values) { vst1q_f32(values, vector); }
  static Vector Larger(Vector a, Vector b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
};

}  // namespace
}  // namespace litebnn
