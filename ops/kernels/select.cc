#include <cstdlib>
#include <cstring>
#include <string>

#include "kernels/table.h"
#include "kernels/x86_cpu.h"

namespace litebnn {
namespace {

// Best first; among those of the same instructions `suits` decides.
const Kernels* const kTables[] = {
#if LITEBNN_X86
    &kAvx512Kernels,
    &kAvx2Kernels,
#elif defined(__aarch64__)
    &kNeon64Kernels,
    &kNeon64InOrderKernels,
#elif defined(__arm__)
    &kNeon32Kernels,
#endif
    &kPortableKernels,
};

}  // namespace

const Kernels* FindKernels(const char* isa) {
  if (isa == nullptr || *isa == '\0') isa = std::getenv("LITEBNN_ISA");
  const bool any = isa == nullptr || *isa == '\0';
  for (const Kernels* table : kTables) {
    const bool wanted = any ? table->suits == nullptr || table->suits() : std::strcmp(isa, table->name) == 0;
    if (wanted && table->available()) return table;
  }
  return nullptr;
}

const char* KernelsName(const Kernels& kernels) { return kernels.name; }

const char* AvailableKernels() {
  static const std::string names = [] {
    std::string list;
    for (const Kernels* table : kTables) {
      if (!table->available()) continue;
      if (!list.empty()) list += ", ";
      list += table->name;
    }
    return list;
  }();
  return names.c_str();
}

}  // namespace litebnn
