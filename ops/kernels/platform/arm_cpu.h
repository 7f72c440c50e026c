// Which 64-bit Arm CPU this is.
#pragma once

#if defined(__aarch64__)
namespace litebnn {
// What its cores do best, of those that Linux tells of. Where some issue their instructions in order, like the
// Cortex-A53 and A55, and others do not, work is better shaped for the others.
enum class ArmCores {
  kInOrder,
  kOutOfOrder,
  kLookups,  // out of order, and as fast at looking up a vector of bytes as at adding one
};
ArmCores CpuCores();
bool CpuHasSme2();
}  // namespace litebnn
#endif
