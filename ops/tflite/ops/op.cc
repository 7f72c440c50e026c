#include "tflite/ops/op.h"

#include <cstdlib>
#include <cstring>

namespace litebnn {

const Isa* DefaultIsa(std::string* problem) {
  const Isa* isa = FindIsa(nullptr);
  if (isa == nullptr) {
    const char* wanted = std::getenv("LITEBNN_ISA");
    *problem = std::string("environment variable LITEBNN_ISA: expected one of ") + AvailableIsas() + ", found '" +
               (wanted == nullptr ? "" : wanted) + "'";
  }
  return isa;
}

const OpType* FindOpType(const TfLiteRegistration& registration) {
  if (registration.builtin_code != kTfLiteBuiltinCustom || registration.custom_name == nullptr) return nullptr;
  for (const OpType* type : {&kQuantizeOp, &kDequantizeOp, &kBMaxPool2dOp, &kBconv2dOp}) {
    if (std::strcmp(registration.custom_name, type->name) == 0) return type;
  }
  return nullptr;
}

}  // namespace litebnn
