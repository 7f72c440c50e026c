// What the nodes of an interpreter share.
//
// The runtime lets a node see itself only, so nodes of one interpreter cannot find each other through it: the list of
// what is shared is the process's. Each thing ends with the last node that holds it. Thread safe.
#pragma once

#include <memory>

#include "kernels/platform/thread_pool.h"
#include "tflite/partition/repack_budget.h"
#include "tflite/runtime/abi.h"

namespace litebnn {

// The custom ops' pool of that many threads. Null where a thread could not be started.
std::shared_ptr<ThreadPool> ThreadPoolOfInterpreter(const TfLiteContext* context, int num_threads);

// What all of the library's nodes may hold, as custom ops or in delegates.
std::shared_ptr<RepackBudget> BudgetOfInterpreter(const TfLiteContext* context);

}  // namespace litebnn
