// Replacements for functions of <algorithm>. Those have one copy per program if not inlined, and the linker could
// choose a copy that was compiled for another CPU.
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
