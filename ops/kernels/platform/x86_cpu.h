// What this CPU and its operating system can run.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#define LITEBNN_X86 1
namespace litebnn {
bool CpuHasAvx2();
// AVX-512 F, DQ, BW, VL and VPOPCNTDQ.
bool CpuHasAvx512Popcount();
// Those, and VBMI, BITALG, VNNI and GFNI.
bool CpuHasAvx512Vbmi();
// Whether it counts the bits of two vectors of 64 bytes in a cycle.
bool CpuCountsBitsFast();
// So for what CPUID says in leaf 0, EBX, EDX and ECX as text, and in leaf 1, EAX.
bool CountsBitsFast(const char* vendor, uint32_t signature);
}  // namespace litebnn
#else
#define LITEBNN_X86 0
#endif
