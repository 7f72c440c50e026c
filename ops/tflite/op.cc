#include "tflite/op.h"

#include <cstring>

namespace litebnn {

const OpType* FindOpType(const TfLiteRegistration& registration) {
  if (registration.builtin_code != kTfLiteBuiltinCustom || registration.custom_name == nullptr) return nullptr;
  for (const OpType* type : {&kQuantizeOp, &kDequantizeOp, &kBMaxPool2dOp, &kBconv2dOp}) {
    if (std::strcmp(registration.custom_name, type->name) == 0) return type;
  }
  return nullptr;
}

}  // namespace litebnn
