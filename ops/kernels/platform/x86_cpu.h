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
// Whether its core permutes the bytes of as many 512-bit vectors in a cycle as it counts the bits of.
bool CpuPermutesAsItCounts();
// So for what CPUID says in leaf 0, EBX, EDX and ECX as text, and in leaf 1, EAX.
bool PermutesAsItCounts(const char* vendor, uint32_t signature);
}  // namespace litebnn
#else
#define LITEBNN_X86 0
#endif
