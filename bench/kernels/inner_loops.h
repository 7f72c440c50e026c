// What a benchmark's result is held against: loops that touch nothing but registers and the L1 cache, and plain
// reading.
#pragma once

#include <cstdint>

namespace litebnn {

// Does at least `macs` binary multiply-adds and returns how many it did.
using InnerLoop = int64_t (*)(int64_t macs);

// Each is compiled for its own ISA.
int64_t InnerLoopAvx2(int64_t macs);
int64_t InnerLoopAvx512(int64_t macs);

// The inner loop of the ISA so named, null where it has none to be timed by itself.
InnerLoop InnerLoopOf(const char* isa);

// A sum over the bits of `count` floats, as fast as memory gives them.
uint64_t ReadAll(const float* values, int64_t count);

}  // namespace litebnn
