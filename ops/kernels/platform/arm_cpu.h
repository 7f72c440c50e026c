// The kind of cores and the instruction sets of this 64-bit Arm CPU.
#pragma once

#if defined(__aarch64__)
namespace litebnn {
// The kind of cores for which kernels are chosen. It stands for all cores of the CPU, because threads may run on any of
// them.
enum class ArmCores {
  kInOrder,  // some or all cores are in order, such as Cortex-A53 and A55
  kOutOfOrder,
  kLookups,  // out of order, with TBL as fast as a vector addition
};
ArmCores CpuCores();
bool CpuHasSme2();
// True if the CPU has the instructions SDOT and UDOT.
bool CpuHasDotProducts();
}  // namespace litebnn
#endif
