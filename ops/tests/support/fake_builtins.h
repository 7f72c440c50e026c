// The runtime's own ops that litebnn takes too, as plain loops.
#pragma once

#include <string>
#include <vector>

#include "tflite/runtime/abi.h"

namespace litebnn::testing {

// Fills in the registration of "ADD", "MUL", "PRELU", "CONCATENATION" or "MAX_POOL_2D"; false for any other op.
bool FindFakeBuiltin(const std::string& op, TfLiteRegistration* registration);

// An array from malloc, as ResizeTensor takes it.
TfLiteIntArray* MakeArray(const std::vector<int>& values);

}  // namespace litebnn::testing
