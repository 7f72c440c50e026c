#include <cstdlib>
#include <cstring>
#include <string>

#include "kernels/isa/isa.h"
#include "kernels/platform/x86_cpu.h"

namespace litebnn {
namespace {

// Best first; among those of the same instructions `suits` decides.
const Isa* const kTables[] = {
#if LITEBNN_X86
    &kAvx512Isa,
    &kAvx2Isa,
#elif defined(__aarch64__)
    &kNeon64Isa,
    &kNeon64InOrderIsa,
#elif defined(__arm__)
    &kNeon32Isa,
#endif
    &kPortableIsa,
};

}  // namespace

const Isa* FindIsa(const char* isa) {
  if (isa == nullptr || *isa == '\0') isa = std::getenv("LITEBNN_ISA");
  const bool any = isa == nullptr || *isa == '\0';
  for (const Isa* table : kTables) {
    const bool wanted = any ? table->suits == nullptr || table->suits() : std::strcmp(isa, table->name) == 0;
    if (wanted && table->available()) return table;
  }
  return nullptr;
}

const char* IsaName(const Isa& isa) { return isa.name; }

const char* AvailableIsas() {
  static const std::string names = [] {
    std::string list;
    for (const Isa* table : kTables) {
      if (!table->available()) continue;
      if (!list.empty()) list += ", ";
      list += table->name;
    }
    return list;
  }();
  return names.c_str();
}

}  // namespace litebnn
