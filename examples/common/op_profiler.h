// Measures the time of each op of a model through the plain C API, which has no profiler of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "tensorflow/lite/c/c_api.h"
#include "tensorflow/lite/c/common.h"

namespace litebnn::examples {

// The time spent in one node of the graph as it is executed.
struct OpTime {
  int node;            // its index in the graph; a delegate's nodes come after the model's
  std::string op;      // such as "LceBconv2d", "CONV_2D" or "TfLiteXNNPackDelegate"
  std::string output;  // name of its first output tensor
  int64_t calls;
  double milliseconds;  // of all calls together
};

// A delegate that claims no node: once the interpreter hands it the graph, it puts a stopwatch around the invoke
// function of every node. It must come after all other delegates, so it stands in for the last of them and applies that
// one first: a graph takes no further delegate after one that wants its shapes fixed, as XNNPACK does.
//
// At most one profiler may exist at a time, and it must outlive its interpreter.
class OpProfiler {
 public:
  // `last` is the delegate to stand in for, or null.
  explicit OpProfiler(TfLiteDelegate* last);
  ~OpProfiler();
  OpProfiler(const OpProfiler&) = delete;
  OpProfiler& operator=(const OpProfiler&) = delete;

  TfLiteDelegate* delegate() { return &delegate_; }

  // Forgets what was measured so far.
  void Reset();

  // All nodes in the order of execution.
  std::vector<OpTime> Times() const;

 private:
  struct Stopwatch {
    TfLiteStatus (*invoke)(TfLiteContext*, TfLiteNode*);
    OpTime time;
  };

  static TfLiteStatus Prepare(TfLiteContext* context, TfLiteDelegate* delegate);
  static TfLiteStatus Invoke(TfLiteContext* context, TfLiteNode* node);

  // The runtime passes no user data to a node's invoke function.
  static OpProfiler* current_;

  TfLiteDelegate delegate_;
  TfLiteDelegate* last_;
  std::vector<const TfLiteNode*> order_;
  std::unordered_map<const TfLiteNode*, Stopwatch> stopwatches_;
};

// A table with a line for each node, and one for each kind of op.
std::string FormatOpTimes(const std::vector<OpTime>& times);

}  // namespace litebnn::examples
