// Which 64-bit Arm CPU this is.
#pragma once

#if defined(__aarch64__)
namespace litebnn {
// What its cores do best together, of those that Linux tells of, as threads are on any of them.
enum class ArmCores {
  kInOrder,  // like the Cortex-A53 and A55, or some are
  kOutOfOrder,
  kLookups,  // out of order, and as fast at looking up a vector of bytes as at adding one
};
ArmCores CpuCores();
bool CpuHasSme2();
}  // namespace litebnn
#endif
