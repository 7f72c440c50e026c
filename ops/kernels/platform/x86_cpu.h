// Instruction sets that this CPU and its operating system support.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#define LITEBNN_X86 1
namespace litebnn {
// True if the CPU has AVX2 and FMA.
bool CpuHasAvx2();
// True if the CPU has AVX-512 with the extensions F, DQ, BW, VL and VPOPCNTDQ.
bool CpuHasAvx512Popcount();
// True if the CPU has AVX2 and AVX-VNNI, the VNNI instructions that do not need AVX-512.
bool CpuHasAvxVnni();
// True if VNNI is available in addition to the features of CpuHasAvx512Popcount.
bool CpuHasAvx512Vnni();
// True if VBMI, BITALG, VNNI and GFNI are available in addition to the features of CpuHasAvx512Popcount.
bool CpuHasAvx512Vbmi();
// True if the CPU runs two 64-byte VPOPCNTD per cycle (AMD Zen 5).
bool CpuCountsBitsFast();
// The result of CpuCountsBitsFast for given CPUID values. The argument `vendor` is the text in EBX, EDX and ECX of leaf
// 0, and `signature` is EAX of leaf 1.
bool CountsBitsFast(const char* vendor, uint32_t signature);
}  // namespace litebnn
#else
#define LITEBNN_X86 0
#endif
