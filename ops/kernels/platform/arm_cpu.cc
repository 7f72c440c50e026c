#include "kernels/platform/arm_cpu.h"

#if defined(__aarch64__)

#include <sys/auxv.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>

namespace litebnn {
namespace {

// Parts of implementer 0x41, Arm.
bool IsInOrder(uint64_t midr) {
  constexpr uint32_t kArm = 0x41;
  constexpr uint32_t kParts[] = {
      0xD02,  // Cortex-A34
      0xD03,  // Cortex-A53
      0xD04,  // Cortex-A35
      0xD05,  // Cortex-A55
      0xD46,  // Cortex-A510
      0xD80,  // Cortex-A520
  };
  if ((midr >> 24 & 0xFFu) != kArm) return false;
  for (const uint32_t part : kParts) {
    if ((midr >> 4 & 0xFFFu) == part) return true;
  }
  return false;
}

// Reads which core `index` is, as Linux tells it; false where it does not, as for a core that is switched off.
bool ReadMidr(int index, uint64_t* midr) {
  char path[80];
  std::snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/regs/identification/midr_el1", index);
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) return false;
  unsigned long value = 0;
  const bool read = std::fscanf(file, "%lx", &value) == 1;
  std::fclose(file);
  *midr = value;
  return read;
}

bool EveryCoreIsInOrder() {
  uint64_t midr = 0;
  bool any_core = false;
  const auto cores = static_cast<int>(sysconf(_SC_NPROCESSORS_CONF));
  for (int core = 0; core < cores; ++core) {
    if (!ReadMidr(core, &midr)) continue;
    if (!IsInOrder(midr)) return false;
    any_core = true;
  }
  if (any_core) return true;
  // The core that this runs on, where the kernel lets programs read the register.
  constexpr unsigned long kHwcapCpuid = 1ul << 11;
  if ((getauxval(AT_HWCAP) & kHwcapCpuid) == 0) return false;
  __asm__("mrs %0, midr_el1" : "=r"(midr));
  return IsInOrder(midr);
}

}  // namespace

bool CpuIsInOrder() {
  static const bool in_order = EveryCoreIsInOrder();
  return in_order;
}

}  // namespace litebnn

#endif  // __aarch64__
