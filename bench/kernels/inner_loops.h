// What a benchmark's result is held against: loops that touch nothing but registers and the L1 cache, and plain
// reading.
#pragma once

#include <cstdint>

namespace litebnn {

// Does at least `macs` binary multiply-adds and returns how many it did.
using InnerLoop = int64_t (*)(int64_t macs);

// Makes `count` float outputs, a multiple of 16, of sums that are in registers, and stores them in the L1 cache.
using OutputLoop = void (*)(int64_t count);
constexpr int64_t kOutputLoopFloats = 1024;

// Each is compiled for its own ISA.
int64_t InnerLoopAvx2(int64_t macs);
int64_t InnerLoopAvx512(int64_t macs);
int64_t InnerLoopAvx512Vbmi(int64_t macs);
void OutputLoopAvx2(int64_t count);
void OutputLoopAvx512(int64_t count);
void OutputLoopAvx512Vbmi(int64_t count);

// What bounds a layer.
struct Loops {
  InnerLoop inner;
  OutputLoop output;
};

// Those of the ISA so named, nulls where it has none to be timed by themselves.
Loops LoopsOf(const char* isa);

// A sum over the bits of `count` floats, as fast as memory gives them.
uint64_t ReadAll(const float* values, int64_t count);

}  // namespace litebnn
