// What all custom ops of an interpreter share.
#pragma once

#include <memory>

#include "kernels/platform/thread_pool.h"
#include "tflite/partition/repack_budget.h"
#include "tflite/runtime/abi.h"

namespace litebnn {

struct InterpreterResources {
  std::unique_ptr<ThreadPool> pool;
  RepackBudget budget;
};

// The resources shared by all nodes of `context` that hold some with that many threads; they end with the last of them.
// Null where a thread could not be started. Thread safe.
//
// The runtime lets a custom op see its own node only, so nodes of one interpreter cannot find each other through it:
// the list of resources in use is the process's.
std::shared_ptr<InterpreterResources> ResourcesOfInterpreter(const TfLiteContext* context, int num_threads);

}  // namespace litebnn
