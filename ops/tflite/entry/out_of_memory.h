// Handling of exhausted memory: containers and strings throw, and no exception may reach the runtime.
#pragma once

#include <exception>

#include "tflite/runtime/abi.h"

namespace litebnn {

// Returns body(), or otherwise() if memory runs out in it. Every function that a runtime calls, and that may allocate,
// consists of one call of CatchOutOfMemory. Nothing else in litebnn throws, and `otherwise` must not allocate.
template <typename Body, typename Otherwise>
auto CatchOutOfMemory(Body body, Otherwise otherwise) -> decltype(body()) {
  try {
    return body();
  } catch (const std::exception&) {
    return otherwise();
  }
}

// Calls CatchOutOfMemory; if memory runs out, reports an error to `context` and returns kTfLiteError.
template <typename Body>
TfLiteStatus ReportOutOfMemory(TfLiteContext* context, Body body) {
  return CatchOutOfMemory(body, [context] {
    context->ReportError(context, "litebnn: out of memory. ");
    return kTfLiteError;
  });
}

}  // namespace litebnn
