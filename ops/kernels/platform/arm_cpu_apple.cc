#include "kernels/platform/arm_cpu.h"

#if defined(__aarch64__) && defined(__APPLE__)

#include <sys/sysctl.h>

#include <cstddef>

namespace litebnn {

namespace {

bool HasFeature(const char* name) {
  int has = 0;
  size_t size = sizeof(has);
  return sysctlbyname(name, &has, &size, nullptr, 0) == 0 && has != 0;
}

}  // namespace

// All of Apple's cores that run macOS are out of order, and their TBL is as fast as a vector addition.
ArmCores CpuCores() { return ArmCores::kLookups; }

bool CpuHasSme2() { return HasFeature("hw.optional.arm.FEAT_SME2"); }

bool CpuHasDotProducts() { return HasFeature("hw.optional.arm.FEAT_DotProd"); }

}  // namespace litebnn

#endif  // __aarch64__ && __APPLE__
