// Delegates, which every runtime takes: libraries that run a part of a model.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "common/session.h"
#include "litebnn/litebnn.h"
#include "tflite/runtime/abi.h"

namespace litebnn::examples {

using Delegate = std::unique_ptr<::TfLiteDelegate, std::function<void(::TfLiteDelegate*)>>;

// The delegates that the options ask for, in the order in which they take their parts; XNNPACK, which each runtime
// makes in its own way, is not among them. Throws Error where one cannot be had.
std::vector<Delegate> MakeDelegates(const SessionOptions& options);

// A delegate that takes nothing: once the runtime hands it the model's first graph, it puts its address into `graph`.
Delegate ObservingDelegate(TfLiteContext** graph);

}  // namespace litebnn::examples
