// Instruction sets that this CPU and its operating system support.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#define LITEBNN_X86 1
namespace litebnn {
bool CpuHasAvx2();
// AVX-512 F, DQ, BW, VL and VPOPCNTDQ.
bool CpuHasAvx512Popcount();
// AVX2 and its own form of VNNI.
bool CpuHasAvxVnni();
// The features of CpuHasAvx512Popcount, and VNNI.
bool CpuHasAvx512Vnni();
// The features of CpuHasAvx512Popcount, and VBMI, BITALG, VNNI and GFNI.
bool CpuHasAvx512Vbmi();
// True if the CPU runs two 64-byte VPOPCNTD per cycle (AMD Zen 5).
bool CpuCountsBitsFast();
// CpuCountsBitsFast for given CPUID values: leaf 0 EBX, EDX and ECX as text, leaf 1 EAX.
bool CountsBitsFast(const char* vendor, uint32_t signature);
}  // namespace litebnn
#else
#define LITEBNN_X86 0
#endif
