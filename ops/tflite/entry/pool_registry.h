// One thread pool for all custom ops of an interpreter.
#pragma once

#include <memory>

#include "kernels/platform/thread_pool.h"
#include "tflite/runtime/abi.h"

namespace litebnn {

// The pool shared by all nodes of `context` that hold one with that many threads; it ends with the last of them. Null
// where a thread could not be started. Thread safe.
//
// The runtime lets a custom op see its own node only, so nodes of one interpreter cannot find each other through it:
// the list of pools in use is the process's.
std::shared_ptr<ThreadPool> PoolOfInterpreter(const TfLiteContext* context, int num_threads);

}  // namespace litebnn
