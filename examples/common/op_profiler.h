// Measures the time of each op of a model through TensorFlow Lite's C library, which has no profiler of its own.
#pragma once

#include <chrono>
#include <unordered_map>
#include <vector>

#include "common/op_times.h"
#include "tensorflow/lite/c/c_api.h"
#include "tensorflow/lite/c/common.h"

namespace litebnn::examples {

// A delegate that claims no node: once the interpreter hands it the graph, it puts a stopwatch around the invoke
// function of every node. It must come after all other delegates, so it stands in for the last of them and applies that
// one first: a graph takes no further delegate after one that wants its shapes fixed, as XNNPACK does.
//
// At most one profiler may exist at a time, and it must outlive its interpreter.
class OpProfiler {
 public:
  // `last` is the delegate to stand in for, or null.
  explicit OpProfiler(::TfLiteDelegate* last);
  ~OpProfiler();
  OpProfiler(const OpProfiler&) = delete;
  OpProfiler& operator=(const OpProfiler&) = delete;

  ::TfLiteDelegate* delegate() { return &delegate_; }

  // Forgets what was measured so far.
  void Reset();

  // All nodes in the order of execution.
  std::vector<OpTime> Times() const;

 private:
  struct Stopwatch {
    ::TfLiteStatus (*invoke)(::TfLiteContext*, ::TfLiteNode*);
    OpTime time;
  };

  static ::TfLiteStatus Prepare(::TfLiteContext* context, ::TfLiteDelegate* delegate);
  static ::TfLiteStatus Invoke(::TfLiteContext* context, ::TfLiteNode* node);

  // The runtime passes no user data to a node's invoke function.
  static OpProfiler* current_;

  ::TfLiteDelegate delegate_;
  ::TfLiteDelegate* last_;
  std::vector<const ::TfLiteNode*> order_;
  std::unordered_map<const ::TfLiteNode*, Stopwatch> stopwatches_;
};

}  // namespace litebnn::examples
