// The file declares a LiteRT accelerator that wraps the delegate. LiteRT's CompiledModel accepts accelerators, but no
// delegates.
#pragma once

#include <cstdio>
#include <string>

#include "litebnn/litebnn.h"
#include "tflite/entry/out_of_memory.h"
#include "tflite/runtime/litert_abi.h"

namespace litebnn {

constexpr const char* kUseInterpreter = "use litebnn.Interpreter";

// Prints one line to stderr, because LiteRT offers accelerators no error reporter.
void PrintLiteRtError(const std::string& problem);

// Returns the folder in which the environment looks for accelerators; empty if it names none.
std::string FindRuntimeFolder(const LiteRtRuntimeContext& runtime, LiteRtEnvironment environment);

// Creates a delegate with the model's or environment's options, and passes its ownership to the runtime.
LiteRtStatus WrapNewDelegate(const LiteRtRuntimeContext& runtime, LiteRtEnvironment environment, LiteRtOptions options,
                             LiteRtDelegateWrapper* wrapper);

// Calls body() and returns its result. If memory runs out in the call, prints one line to stderr and returns an error
// status.
template <typename Body>
LiteRtStatus PrintOutOfMemory(Body body) {
  return CatchOutOfMemory(body, [] {
    std::fputs("litebnn: out of memory\n", stderr);
    return kLiteRtStatusErrorMemoryAllocationFailure;
  });
}

}  // namespace litebnn

// The name under which LiteRT looks up the accelerator's definition in libraries that it loads as accelerators.
extern "C" LITEBNN_EXPORT const litebnn::LiteRtAcceleratorDef LiteRtAcceleratorImpl;

// LiteRT 2.1.6 does not know the version of the structure `LiteRtAcceleratorDef`, and calls this function instead. The
// function does nothing unless this library is in the environment's folder of accelerators.
extern "C" LITEBNN_EXPORT litebnn::LiteRtStatus LiteRtRegisterGpuAccelerator(litebnn::LiteRtEnvironment environment);
