// Registers litebnn's ops with a C++ op resolver of the TensorFlow Lite / LiteRT runtime.
#pragma once

#include <cstddef>

#include "litebnn/litebnn.h"

namespace litebnn {

/** Adds all ops to `resolver`: a tflite::MutableOpResolver, or anything with its
 * `AddCustom(const char* name, const TfLiteRegistration* registration)`::
 *
 *   tflite::ops::builtin::BuiltinOpResolver resolver;
 *   litebnn::RegisterOps(resolver);
 */
template <class Resolver>
void RegisterOps(Resolver& resolver) {
  std::size_t count = 0;
  const LitebnnOp* ops = litebnn_ops(&count);
  for (std::size_t i = 0; i < count; ++i) resolver.AddCustom(ops[i].name, ops[i].registration);
}

}  // namespace litebnn
