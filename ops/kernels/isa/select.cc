#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernels/isa/isa.h"
#include "kernels/platform/x86_cpu.h"

namespace litebnn {
namespace {

// The array has the ISAs of this build, fastest first. If several ISAs use the same instructions, their member `suits`
// says which one is the fastest on this CPU.
const Isa* const kIsas[] = {
#if LITEBNN_X86
    &kAvx512VbmiIsa,
    &kAvx512Isa,
    &kAvx2Isa,
#elif defined(__aarch64__)
    &kSme2Isa,     &kNeon64TblIsa, &kNeon64Isa, &kNeon64InOrderIsa,
#elif defined(__arm__)
    &kNeon32Isa,
#endif
    &kPortableIsa,
};

constexpr size_t kIsaCount = sizeof(kIsas) / sizeof(kIsas[0]);

// ForcedIsas has a copy of each ISA, without the function `better`. A user who names an ISA gets its copy, which
// delegates no filter to another ISA.
struct ForcedIsas {
  Isa isas[kIsaCount];

  ForcedIsas() {
    for (size_t i = 0; i < kIsaCount; ++i) {
      isas[i] = *kIsas[i];
      isas[i].better = nullptr;
    }
  }
};

const Isa* FindBest() {
  for (const Isa* isa : kIsas) {
    if ((isa->suits == nullptr || isa->suits()) && isa->available()) return isa;
  }
  return nullptr;
}

const Isa* FindByName(const char* name) {
  static const ForcedIsas forced;
  for (const Isa& isa : forced.isas) {
    if (std::strcmp(name, isa.name) == 0 && isa.available()) return &isa;
  }
  return nullptr;
}

// Names has the names of the available ISAs as text. The constructor allocates no memory, because callers may ask for
// the names after memory has run out.
struct Names {
  char text[128] = "";
  size_t length = 0;

  Names() {
    const Isa* const best = FindBest();
    Append(*best);
    for (const Isa* isa : kIsas) {
      if (isa != best && isa->available()) Append(*isa);
    }
  }

  void Append(const Isa& isa) {
    const int written = std::snprintf(text + length, sizeof(text) - length, "%s%s", length > 0 ? ", " : "", isa.name);
    length += static_cast<size_t>(written);
  }
};

}  // namespace

const Isa* FindIsa(const char* isa) {
  if (isa == nullptr || *isa == '\0') isa = std::getenv("LITEBNN_ISA");
  return isa == nullptr || *isa == '\0' ? FindBest() : FindByName(isa);
}

const char* IsaName(const Isa& isa) { return isa.name; }

const char* AvailableIsas() {
  static const Names names;
  return names.text;
}

}  // namespace litebnn
