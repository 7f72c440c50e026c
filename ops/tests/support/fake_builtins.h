// Simple implementations that stand in for the runtime's own ops that litebnn may claim.
#pragma once

#include <string>
#include <vector>

#include "tflite/runtime/abi.h"

namespace litebnn::testing {

// Sets the registration of the builtin op named "ADD", "MUL", "PRELU", "CONCATENATION" or "MAX_POOL_2D". Returns false
// for any other op.
bool FindFakeBuiltin(const std::string& op, TfLiteRegistration* registration);

// Copies values into an array from malloc, as the runtime's function ResizeTensor requires.
TfLiteIntArray* MakeArray(const std::vector<int>& values);
TfLiteFloatArray* MakeFloatArray(const std::vector<float>& values);

}  // namespace litebnn::testing
