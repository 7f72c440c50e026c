// The delegate as a LiteRT accelerator: the way into CompiledModel, which takes no delegates.
#pragma once

#include <cstdio>
#include <string>

#include "litebnn/litebnn.h"
#include "tflite/entry/out_of_memory.h"
#include "tflite/runtime/litert_abi.h"

namespace litebnn {

constexpr const char* kUseInterpreter = "use litebnn.Interpreter";

// A line on stderr. LiteRT has no place for an accelerator's words.
void PrintLiteRtError(const std::string& problem);

// The folder in which the environment looks for accelerators; empty where it names none.
std::string FindRuntimeFolder(const LiteRtRuntimeContext& runtime, LiteRtEnvironment environment);

// A delegate for a model with these options, made the runtime's own.
LiteRtStatus WrapNewDelegate(const LiteRtRuntimeContext& runtime, LiteRtEnvironment environment, LiteRtOptions options,
                             LiteRtDelegateWrapper* wrapper);

// What body() returns, or a status after one line on stderr where memory ran out in it.
template <typename Body>
LiteRtStatus PrintOutOfMemory(Body body) {
  return CatchOutOfMemory(body, [] {
    std::fputs("litebnn: out of memory\n", stderr);
    return kLiteRtStatusErrorMemoryAllocationFailure;
  });
}

}  // namespace litebnn

// LiteRT looks for this name in the libraries that it loads as accelerators.
extern "C" LITEBNN_EXPORT const litebnn::LiteRtAcceleratorDef LiteRtAcceleratorImpl;

// LiteRT 2.1.6, which takes the structure above for one of an unknown version, calls this function instead. It
// registers nothing in an environment whose folder of accelerators does not hold this library.
extern "C" LITEBNN_EXPORT litebnn::LiteRtStatus LiteRtRegisterGpuAccelerator(litebnn::LiteRtEnvironment environment);
