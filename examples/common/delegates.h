// Delegates are libraries that run parts of a model. Every runtime supports them.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "common/session.h"
#include "litebnn/litebnn.h"
#include "tflite/runtime/abi.h"

namespace litebnn::examples {

using Delegate = std::unique_ptr<::TfLiteDelegate, std::function<void(::TfLiteDelegate*)>>;

// Makes the delegates that the options name, in the order in which they claim nodes. XNNPACK is not among them, because
// each runtime creates it differently. Throws Error if a delegate cannot be created.
std::vector<Delegate> MakeDelegates(const SessionOptions& options);

// Makes a delegate that claims no node. When the runtime passes the model's first graph to the delegate, the delegate
// stores the graph's address in `graph`.
Delegate ObservingDelegate(TfLiteContext** graph);

}  // namespace litebnn::examples
