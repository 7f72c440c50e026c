// Loops whose times are lower bounds for the times of kernels. They use only registers and the L1 cache, or only read
// memory.
#pragma once

#include <cstdint>

namespace litebnn {

// Does at least `macs` binary multiply-adds, and returns the number that it did.
using InnerLoop = int64_t (*)(int64_t macs);

// Converts sums in registers to `count` float outputs, a multiple of 16, and stores them in the L1 cache.
using OutputLoop = void (*)(int64_t count);
constexpr int64_t kOutputLoopFloats = 1024;

// The inner loops of the ISAs. Each is compiled with the compiler flags of its ISA.
int64_t InnerLoopAvx2(int64_t macs);
int64_t InnerLoopAvx512(int64_t macs);
int64_t InnerLoopAvx512Vbmi(int64_t macs);
void OutputLoopAvx2(int64_t count);
void OutputLoopAvx512(int64_t count);
void OutputLoopAvx512Vbmi(int64_t count);

// The two loops of an ISA that give lower bounds for a layer's time.
struct Loops {
  InnerLoop inner;
  OutputLoop output;
};

// Returns the loops of the ISA with this name, or null pointers if there are none.
Loops LoopsOf(const char* isa);

// Adds up `count` floats, read as integers. The speed is limited only by the memory.
uint64_t ReadAll(const float* values, int64_t count);

}  // namespace litebnn
