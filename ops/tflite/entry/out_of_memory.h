// Where memory runs out: containers and strings throw, and no exception may reach the runtime.
#pragma once

#include <exception>

#include "tflite/runtime/abi.h"

namespace litebnn {

// What body() returns, or otherwise() where memory ran out in it. Every function that a runtime calls, and that may
// allocate, is one call of this. Nothing else throws in litebnn, and `otherwise` allocates nothing.
template <typename Body, typename Otherwise>
auto CatchOutOfMemory(Body body, Otherwise otherwise) -> decltype(body()) {
  try {
    return body();
  } catch (const std::exception&) {
    return otherwise();
  }
}

// The same for a function that has a context to report to.
template <typename Body>
TfLiteStatus ReportOutOfMemory(TfLiteContext* context, Body body) {
  return CatchOutOfMemory(body, [context] {
    context->ReportError(context, "litebnn: out of memory. ");
    return kTfLiteError;
  });
}

}  // namespace litebnn
