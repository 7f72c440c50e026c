#include "tflite/entry/defaults.h"

#include <algorithm>
#include <cstdlib>

namespace litebnn {

int RecommendedThreads(const TfLiteContext& context) {
  return std::clamp(context.recommended_num_threads, 1, kMaxThreads);
}

const Isa* DefaultIsa(std::string* problem) {
  const Isa* isa = FindIsa(nullptr);
  if (isa == nullptr) {
    const char* wanted = std::getenv("LITEBNN_ISA");
    *problem = std::string("environment variable LITEBNN_ISA: expected one of ") + AvailableIsas() + ", found '" +
               (wanted == nullptr ? "" : wanted) + "'";
  }
  return isa;
}

}  // namespace litebnn
