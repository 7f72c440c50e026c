// MicroMutableOpResolver, with the memory layout that it has in the packages on PyPI.
#pragma once

#include "tensorflow/lite/micro/micro_op_resolver.h"

namespace tflite {
#ifdef TFLM_IS_NEW
namespace micro {
#endif

template <unsigned kOps>
class MicroMutableOpResolver {
 public:
  virtual ~MicroMutableOpResolver() = default;

  TfLiteStatus AddCustom(const char* name, const TFLMRegistration* registration) {
    if (count_ >= kOps) return kTfLiteError;
    registrations_[count_] = *registration;
    registrations_[count_].builtin_code = 32;
    registrations_[count_].custom_name = name;
    ++count_;
    return kTfLiteOk;
  }

 private:
  TFLMRegistration registrations_[kOps];
  unsigned count_;
};

#ifdef TFLM_IS_NEW
}  // namespace micro
#endif
}  // namespace tflite
