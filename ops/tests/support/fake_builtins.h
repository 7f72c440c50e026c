// Simple loops for the runtime's own ops that litebnn may claim.
#pragma once

#include <string>
#include <vector>

#include "tflite/runtime/abi.h"

namespace litebnn::testing {

// Sets the registration of "ADD", "MUL", "PRELU", "CONCATENATION" or "MAX_POOL_2D"; false for any other op.
bool FindFakeBuiltin(const std::string& op, TfLiteRegistration* registration);

// An array from malloc, as ResizeTensor requires.
TfLiteIntArray* MakeArray(const std::vector<int>& values);
TfLiteFloatArray* MakeFloatArray(const std::vector<float>& values);

}  // namespace litebnn::testing
