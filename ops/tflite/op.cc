#include "tflite/op.h"

#include <cstdlib>
#include <cstring>

namespace litebnn {

const Kernels* DefaultKernels(std::string* problem) {
  const Kernels* kernels = FindKernels(nullptr);
  if (kernels == nullptr) {
    const char* wanted = std::getenv("LITEBNN_ISA");
    *problem = std::string("environment variable LITEBNN_ISA: expected one of ") + AvailableKernels() + ", found '" +
               (wanted == nullptr ? "" : wanted) + "'";
  }
  return kernels;
}

const OpType* FindOpType(const TfLiteRegistration& registration) {
  if (registration.builtin_code != kTfLiteBuiltinCustom || registration.custom_name == nullptr) return nullptr;
  for (const OpType* type : {&kQuantizeOp, &kDequantizeOp, &kBMaxPool2dOp, &kBconv2dOp}) {
    if (std::strcmp(registration.custom_name, type->name) == 0) return type;
  }
  return nullptr;
}

}  // namespace litebnn
