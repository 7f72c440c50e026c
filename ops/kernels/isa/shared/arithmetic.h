// What of <algorithm> ISAs need. That is shared by all files of a program wherever a compiler does not inline it, and a
// linker could give any CPU the copy that was compiled for another one.
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
