#include "kernels/platform/x86_cpu.h"

#if LITEBNN_X86

#include <cpuid.h>

#include <cstdint>
#include <cstring>

namespace litebnn {
namespace {

struct Features {
  uint32_t leaf1_ecx = 0, leaf7_ebx = 0, leaf7_ecx = 0, leaf7_1_eax = 0, saved_state = 0;
};

Features ReadFeatures() {
  Features features;
  uint32_t eax = 0, ebx = 0, edx = 0;
  if (!__get_cpuid(1, &eax, &ebx, &features.leaf1_ecx, &edx)) return features;
  __get_cpuid_count(7, 0, &eax, &features.leaf7_ebx, &features.leaf7_ecx, &edx);
  // In leaf 7, subleaf 0 of CPUID returns the number of the last subleaf in EAX, which is 0 if there is no further
  // subleaf.
  uint32_t ecx = 0;
  if (eax >= 1) __get_cpuid_count(7, 1, &features.leaf7_1_eax, &ebx, &ecx, &edx);
  // XGETBV returns the register sets that the operating system saves. The instruction exists if bit 27, OSXSAVE, is
  // set.
  if ((features.leaf1_ecx >> 27 & 1u) != 0) {
    uint32_t high = 0;
    __asm__("xgetbv" : "=a"(features.saved_state), "=d"(high) : "c"(0));
  }
  return features;
}

// The features are cached: CPUID takes microseconds in virtual machines, and every node of a model asks for them.
const Features& CpuFeatures() {
  static const Features features = ReadFeatures();
  return features;
}

bool HasBits(uint32_t value, uint32_t bits) { return (value & bits) == bits; }

}  // namespace

bool CpuHasAvx2() {
  const Features& features = CpuFeatures();
  constexpr uint32_t kFma = 1u << 12;
  return HasBits(features.saved_state, 0x6u) && HasBits(features.leaf1_ecx, kFma) &&
         HasBits(features.leaf7_ebx, 1u << 5);
}

bool CpuHasAvx512Popcount() {
  const Features& features = CpuFeatures();
  constexpr uint32_t kFoundationAndForms = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;
  return HasBits(features.saved_state, 0xE6u) && HasBits(features.leaf7_ebx, kFoundationAndForms) &&
         HasBits(features.leaf7_ecx, 1u << 14);
}

bool CpuHasAvxVnni() { return CpuHasAvx2() && HasBits(CpuFeatures().leaf7_1_eax, 1u << 4); }

bool CpuHasAvx512Vnni() { return CpuHasAvx512Popcount() && HasBits(CpuFeatures().leaf7_ecx, 1u << 11); }

bool CpuHasAvx512Vbmi() {
  constexpr uint32_t kVbmiAndGfni = 1u << 1 | 1u << 8, kVnniAndBitalg = 1u << 11 | 1u << 12;
  return CpuHasAvx512Popcount() && HasBits(CpuFeatures().leaf7_ecx, kVbmiAndGfni | kVnniAndBitalg);
}

bool CountsBitsFast(const char* vendor, uint32_t signature) {
  // From family 15 on, the CPU's family is the sum of two fields. In older families the second field is 0.
  const uint32_t family = (signature >> 8 & 0xFu) + (signature >> 20 & 0xFFu);
  constexpr uint32_t kZen5 = 0x1A;
  return std::strcmp(vendor, "AuthenticAMD") == 0 && family >= kZen5;
}

bool CpuCountsBitsFast() {
  char vendor[13] = {};
  uint32_t highest = 0, words[3] = {}, signature = 0, ebx = 0, ecx = 0, edx = 0;
  __get_cpuid(0, &highest, &words[0], &words[2], &words[1]);
  std::memcpy(vendor, words, sizeof(words));
  __get_cpuid(1, &signature, &ebx, &ecx, &edx);
  return CountsBitsFast(vendor, signature);
}

}  // namespace litebnn

#endif  // LITEBNN_X86
