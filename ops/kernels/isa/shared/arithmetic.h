// The functions of this file replace std::min and std::max. If a function of the standard library is not inlined, the
// linker keeps one copy per program, which might be compiled for another CPU.
#pragma once

namespace litebnn {
namespace {

template <typename T>
constexpr T Min(T a, T b) {
  return b < a ? b : a;
}

template <typename T>
constexpr T Max(T a, T b) {
  return a < b ? b : a;
}

}  // namespace
}  // namespace litebnn
