// Resources that the nodes of an interpreter share: a thread pool and a memory budget.
//
// The runtime gives a node no access to other nodes. Therefore the process has one list with the shared resources of
// all interpreters. Each resource is freed with the last node that holds it. The list is thread safe.
#pragma once

#include <memory>

#include "kernels/platform/thread_pool.h"
#include "tflite/partition/repack_budget.h"
#include "tflite/runtime/abi.h"

namespace litebnn {

// The custom ops' thread pool with `num_threads` threads; null if a thread could not be started.
std::shared_ptr<ThreadPool> ThreadPoolOfInterpreter(const TfLiteContext* context, int num_threads);

// The memory budget that all nodes of an interpreter share, both custom ops and delegate partitions.
std::shared_ptr<RepackBudget> BudgetOfInterpreter(const TfLiteContext* context);

}  // namespace litebnn
