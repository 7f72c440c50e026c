// Delegates are libraries that run parts of a model. Every runtime supports them.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "common/session.h"
#include "litebnn/litebnn.h"
#include "tflite/runtime/abi.h"

namespace litebnn::programs {

using Delegate = std::unique_ptr<::TfLiteDelegate, std::function<void(::TfLiteDelegate*)>>;

// Makes the delegates that the options name, in the order in which they claim nodes. XNNPACK is not among them, because
// each runtime creates it differently. Throws Error if a delegate cannot be created.
std::vector<Delegate> MakeDelegates(const SessionOptions& options);

// The graphs that a runtime passes to its delegates.
struct ObservedGraphs {
  TfLiteContext* first = nullptr;  // the model's first graph
  bool assigns_variables = false;  // true if an op assigns a variable, which is a resource and no tensor
};

// Makes a delegate that claims no node, and describes the model's graphs in `graphs`.
Delegate ObservingDelegate(ObservedGraphs* graphs);

}  // namespace litebnn::programs
