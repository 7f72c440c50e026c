// The default values of options that the user leaves out.
#pragma once

#include <string>

#include "kernels/kernels.h"
#include "tflite/runtime/abi.h"

namespace litebnn {

// The upper limit for thread counts. More threads gain nothing, and a typing mistake must not start millions.
constexpr int kMaxThreads = 256;

// The runtime's recommended number of threads, or 1 if it recommends none.
int RecommendedThreads(const TfLiteContext& context);

// The ISA that the environment variable LITEBNN_ISA names, or the fastest for this CPU. If the variable names no ISA
// that this CPU can run, returns null and puts the reason in `*problem`.
const Isa* DefaultIsa(std::string* problem);

}  // namespace litebnn
