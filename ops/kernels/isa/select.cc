#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernels/isa/isa.h"
#include "kernels/platform/x86_cpu.h"

namespace litebnn {
namespace {

// Best first; among those of the same instructions `suits` decides.
const Isa* const kIsas[] = {
#if LITEBNN_X86
    &kAvx512VbmiIsa,
    &kAvx512Isa,
    &kAvx2Isa,
#elif defined(__aarch64__)
    &kNeon64TblIsa,
    &kNeon64Isa,
    &kNeon64InOrderIsa,
#elif defined(__arm__)
    &kNeon32Isa,
#endif
    &kPortableIsa,
};

// Made without allocating, as the name of an unknown ISA may be asked for where memory has run out.
struct Names {
  char text[128] = "";

  Names() {
    size_t length = 0;
    for (const Isa* isa : kIsas) {
      if (!isa->available()) continue;
      const int written =
          std::snprintf(text + length, sizeof(text) - length, "%s%s", length > 0 ? ", " : "", isa->name);
      length += static_cast<size_t>(written);
    }
  }
};

}  // namespace

const Isa* FindIsa(const char* isa) {
  if (isa == nullptr || *isa == '\0') isa = std::getenv("LITEBNN_ISA");
  const bool any = isa == nullptr || *isa == '\0';
  for (const Isa* candidate : kIsas) {
    const bool wanted =
        any ? candidate->suits == nullptr || candidate->suits() : std::strcmp(isa, candidate->name) == 0;
    if (wanted && candidate->available()) return candidate;
  }
  return nullptr;
}

const char* IsaName(const Isa& isa) { return isa.name; }

const char* AvailableIsas() {
  static const Names names;
  return names.text;
}

}  // namespace litebnn
