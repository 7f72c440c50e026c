#include "kernels/platform/arm_cpu.h"

#if defined(__aarch64__) && defined(__linux__)

#include <sys/auxv.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>

namespace litebnn {
namespace {

constexpr uint32_t kArm = 0x41, kQualcomm = 0x51, kApple = 0x61;

struct Cores {
  uint32_t implementer;
  uint32_t part;
  ArmCores kind;
};
// The table lists the kinds of known cores. A core that is not listed counts as kOutOfOrder, for which kernels count
// bits by CNT. Table lookups by TBL are no faster there. Cortex-A57, A72 and A73 need several micro-ops per TBL.
// Cortex-X and Neoverse V cores have more execution units for CNT than for TBL.
constexpr Cores kCores[] = {
    {kArm, 0xD02, ArmCores::kInOrder},       // Cortex-A34
    {kArm, 0xD03, ArmCores::kInOrder},       // Cortex-A53
    {kArm, 0xD04, ArmCores::kInOrder},       // Cortex-A35
    {kArm, 0xD05, ArmCores::kInOrder},       // Cortex-A55
    {kArm, 0xD46, ArmCores::kInOrder},       // Cortex-A510
    {kArm, 0xD80, ArmCores::kInOrder},       // Cortex-A520
    {kArm, 0xD0B, ArmCores::kLookups},       // Cortex-A76
    {kArm, 0xD0C, ArmCores::kLookups},       // Neoverse N1
    {kArm, 0xD0D, ArmCores::kLookups},       // Cortex-A77
    {kArm, 0xD0E, ArmCores::kLookups},       // Cortex-A76AE
    {kArm, 0xD41, ArmCores::kLookups},       // Cortex-A78
    {kArm, 0xD42, ArmCores::kLookups},       // Cortex-A78AE
    {kArm, 0xD47, ArmCores::kLookups},       // Cortex-A710
    {kArm, 0xD49, ArmCores::kLookups},       // Neoverse N2
    {kArm, 0xD4B, ArmCores::kLookups},       // Cortex-A78C
    {kQualcomm, 0x804, ArmCores::kLookups},  // Kryo 4xx Gold, a Cortex-A76
    {kQualcomm, 0x805, ArmCores::kInOrder},  // Kryo 4xx Silver, a Cortex-A55
};

ArmCores KindOf(uint64_t midr) {
  const auto implementer = static_cast<uint32_t>(midr >> 24 & 0xFFu), part = static_cast<uint32_t>(midr >> 4 & 0xFFFu);
  if (implementer == kApple) return ArmCores::kLookups;
  for (const Cores& cores : kCores) {
    if (cores.implementer == implementer && cores.part == part) return cores.kind;
  }
  return ArmCores::kOutOfOrder;
}

// Reads the MIDR of core `index` from sysfs. Returns false if Linux does not report it, for example for an offline
// core.
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

// Chooses the kind of core whose inner loop all cores of a CPU run. Table lookups are chosen if some cores have a fast
// TBL and all others are in-order. Lookups halve the speed of in-order cores, but the cores with a fast TBL gain more.
// Otherwise any in-order core decides for the loop for in-order cores, which is equally fast on out-of-order cores.
ArmCores CombineCores(bool any_in_order, bool any_out_of_order, bool any_lookups) {
  if (any_lookups && !any_out_of_order) return ArmCores::kLookups;
  return any_in_order ? ArmCores::kInOrder : ArmCores::kOutOfOrder;
}

ArmCores ReadCores() {
  uint64_t midr = 0;
  bool any_in_order = false, any_out_of_order = false, any_lookups = false;
  const auto cores = static_cast<int>(sysconf(_SC_NPROCESSORS_CONF));
  for (int core = 0; core < cores; ++core) {
    if (!ReadMidr(core, &midr)) continue;
    const ArmCores kind = KindOf(midr);
    any_in_order |= kind == ArmCores::kInOrder;
    any_out_of_order |= kind == ArmCores::kOutOfOrder;
    any_lookups |= kind == ArmCores::kLookups;
  }
  if (any_in_order || any_out_of_order || any_lookups) {
    return CombineCores(any_in_order, any_out_of_order, any_lookups);
  }
  // If sysfs reports no core, the core that runs this code decides, provided that Linux lets programs read its MIDR.
  constexpr unsigned long kHwcapCpuid = 1ul << 11;
  if ((getauxval(AT_HWCAP) & kHwcapCpuid) == 0) return ArmCores::kOutOfOrder;
  __asm__("mrs %0, midr_el1" : "=r"(midr));
  return KindOf(midr);
}

}  // namespace

ArmCores CpuCores() {
  static const ArmCores cores = ReadCores();
  return cores;
}

bool CpuHasSme2() {
  // Older C libraries do not define this constant, HWCAP2_SME2.
  constexpr unsigned long kHwcap2Sme2 = 1ul << 37;
  return (getauxval(AT_HWCAP2) & kHwcap2Sme2) != 0;
}

bool CpuHasDotProducts() {
  constexpr unsigned long kHwcapDotProducts = 1ul << 20;
  return (getauxval(AT_HWCAP) & kHwcapDotProducts) != 0;
}

}  // namespace litebnn

#elif defined(__aarch64__) && defined(__APPLE__)

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

#endif
