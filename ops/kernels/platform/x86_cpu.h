// What this CPU and its operating system can run.
#pragma once

#if defined(__x86_64__)
#define LITEBNN_X86 1
namespace litebnn {
bool CpuHasAvx2();
// AVX-512 F, DQ, BW, VL and VPOPCNTDQ.
bool CpuHasAvx512Popcount();
// Those, and VBMI, BITALG, VNNI and GFNI.
bool CpuHasAvx512Vbmi();
// Whether it counts the bits of a vector as often in a cycle as it looks bytes up: AMD's Zen 5.
bool CpuCountsBitsFast();
}  // namespace litebnn
#else
#define LITEBNN_X86 0
#endif
