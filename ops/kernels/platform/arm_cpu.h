// Which 64-bit Arm CPU this is.
#pragma once

#if defined(__aarch64__)
namespace litebnn {
// Whether every core that Linux tells of issues its instructions in order, like the Cortex-A53 and A55. Where there are
// others too, work is better shaped for those.
bool CpuIsInOrder();
}  // namespace litebnn
#endif
