// Delegates, which every runtime supports: libraries that run parts of a model.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "common/session.h"
#include "litebnn/litebnn.h"
#include "tflite/runtime/abi.h"

namespace litebnn::examples {

using Delegate = std::unique_ptr<::TfLiteDelegate, std::function<void(::TfLiteDelegate*)>>;

// The delegates that the options ask for, in the order in which they claim nodes. XNNPACK is not included, because each
// runtime creates it differently. Throws Error if one cannot be created.
std::vector<Delegate> MakeDelegates(const SessionOptions& options);

// A delegate that claims nothing. When the runtime passes it the model's first graph, it stores its address in `graph`.
Delegate ObservingDelegate(TfLiteContext** graph);

}  // namespace litebnn::examples
