// A function that the interpreter of the package tflite-micro calls with its op resolver, which has room for 200 ops.
#include <stdarg.h>
#include <stdio.h>

#include "litebnn_tflm.h"
#include "tensorflow/lite/micro/micro_log.h"
#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"

void MicroPrintf(const char* format, ...) {
  va_list values;
  va_start(values, format);
  vfprintf(stderr, format, values);
  va_end(values);
  fputc('\n', stderr);
}

#ifdef TFLM_IS_NEW
using tflite::micro::MicroMutableOpResolver;
#else
using tflite::MicroMutableOpResolver;
#endif

extern "C" __attribute__((visibility("default"))) bool litebnn_register_micro(MicroMutableOpResolver<200>* resolver) {
  return LceRegisterAll(*resolver) == 0;
}
