// Measures the time of each op of a model in TensorFlow Lite's C library, which has no profiler of its own.
#pragma once

#include <chrono>
#include <unordered_map>
#include <vector>

#include "common/times.h"
#include "tensorflow/lite/c/c_api.h"
#include "tensorflow/lite/c/common.h"

namespace litebnn::programs {

// A delegate that claims no node. When the interpreter passes it the graph, it wraps every node's invoke function in a
// stopwatch. The profiler must come after all other delegates. Some delegates, such as XNNPACK, allow no delegate after
// them. Therefore the profiler takes the place of the last delegate, and applies that delegate first.
//
// Only one profiler may exist at a time, and the profiler must outlive its interpreter.
class OpProfiler {
 public:
  // `last` is the delegate whose place the profiler takes, or null.
  explicit OpProfiler(::TfLiteDelegate* last);
  ~OpProfiler();
  OpProfiler(const OpProfiler&) = delete;
  OpProfiler& operator=(const OpProfiler&) = delete;

  ::TfLiteDelegate* delegate() { return &delegate_; }

  // Drops all measurements.
  void Reset();

  // Returns the times of all nodes, in execution order.
  std::vector<OpTime> Times() const;

 private:
  struct Stopwatch {
    ::TfLiteStatus (*invoke)(::TfLiteContext*, ::TfLiteNode*);
    OpTime time;
  };

  static ::TfLiteStatus Prepare(::TfLiteContext* context, ::TfLiteDelegate* delegate);
  static ::TfLiteStatus Invoke(::TfLiteContext* context, ::TfLiteNode* node);

  // The pointer to the profiler is static, because the runtime passes no user data to a node's invoke function.
  static OpProfiler* current_;

  ::TfLiteDelegate delegate_;
  ::TfLiteDelegate* last_;
  std::vector<const ::TfLiteNode*> order_;
  std::unordered_map<const ::TfLiteNode*, Stopwatch> stopwatches_;
};

}  // namespace litebnn::programs
