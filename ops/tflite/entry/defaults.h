// What the ops run with where nobody says.
#pragma once

#include <string>

#include "kernels/kernels.h"
#include "tflite/runtime/abi.h"

namespace litebnn {

// More threads than this help nothing; it also keeps a slip of the pen from starting millions.
constexpr int kMaxThreads = 256;

// The number of threads that the runtime recommends, 1 where it recommends none.
int RecommendedThreads(const TfLiteContext& context);

// The ISA that the environment variable LITEBNN_ISA names, else the best for this CPU. Null, and the reason in
// `*problem`, where the variable names none that this CPU can run.
const Isa* DefaultIsa(std::string* problem);

}  // namespace litebnn
