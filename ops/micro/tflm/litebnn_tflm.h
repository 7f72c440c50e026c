// The four binary ops for TensorFlow Lite Micro, computed by the kernels of ops/micro:
//
//   #include "litebnn_tflm.h"
//   #include "tensorflow/lite/micro/micro_mutable_op_resolver.h"
//
//   tflite::MicroMutableOpResolver<8> resolver;
//   LceRegisterAll(resolver);
//
// The user supplies the headers and the library of TensorFlow Lite Micro. Until October 2026, its types were in the
// global namespace and its functions in tflite. Since then, both are in tflite::micro. Inside tflite::micro,
// unqualified names find the types and functions of any version, so this code is in that namespace.
#pragma once

#include "tensorflow/lite/micro/micro_context.h"
#include "tensorflow/lite/micro/micro_op_resolver.h"

namespace tflite {
namespace micro {
namespace lce {

struct Op {
  const char* name;
  TFLMRegistration registration;
};

constexpr int kOps = 4;

// Returns the op with this index, 0 to kOps - 1.
Op OpAt(int index);

// Adds the ops to a MicroMutableOpResolver with room for kOps more.
template <class Resolver>
TfLiteStatus LceRegisterAll(Resolver& resolver) {
  for (int i = 0; i < kOps; ++i) {
    Op op = OpAt(i);
    const TfLiteStatus status = resolver.AddCustom(op.name, &op.registration);
    if (status != kTfLiteOk) return status;
  }
  return kTfLiteOk;
}

}  // namespace lce
}  // namespace micro
}  // namespace tflite

using tflite::micro::lce::LceRegisterAll;
