// The delegate: claims the nodes that litebnn computes and leaves all others to the runtime.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/platform/thread_pool.h"
#include "tflite/partition/arena.h"
#include "tflite/partition/claim.h"
#include "tflite/runtime/abi.h"

namespace litebnn {

struct DelegateOptions {
  std::optional<int> num_threads;  // the runtime's recommendation if not given
  const Isa* isa = nullptr;
  bool verbose = false;
  bool describe = false;
};

// What the delegate does with a graph: the ops of its nodes while the runtime makes partitions, and JSON
// afterwards if the option `describe` is set.
struct DelegatedGraph {
  const TfLiteContext* context;
  NodeTypes types = {};
  std::string text = {};  // the JSON object, with the array of partitions still open
};

class Delegate {
 public:
  explicit Delegate(const DelegateOptions& options);

  TfLiteDelegate* c_delegate() { return &c_delegate_; }
  static Delegate* FromC(TfLiteDelegate* delegate) { return static_cast<Delegate*>(delegate->data_); }

  const DelegateOptions& options() const { return options_; }
  // Returns the thread pool. The first call makes it, with as many threads as its caller's runtime recommends. Returns
  // null after an error has been reported.
  ThreadPool* GetThreadPool(TfLiteContext* context);
  // A partition holds this mutex while it uses the threads and the arena, because interpreters on different threads may
  // share the delegate.
  std::mutex& run_mutex() { return run_mutex_; }
  Arena& arena() { return arena_; }

  // The graph that a runtime is delegating, which only the calling thread uses. Returns null unless it has begun.
  DelegatedGraph* FindGraph(const TfLiteContext* context);
  DelegatedGraph* BeginGraph(const TfLiteContext* context);
  void EndGraph(const DelegatedGraph* graph);
  // See litebnn_describe.
  const char* Describe();

 private:
  const DelegateOptions options_;
  TfLiteDelegate c_delegate_ = {};
  std::mutex pool_mutex_;
  std::unique_ptr<ThreadPool> pool_;
  std::mutex run_mutex_;
  Arena arena_;
  std::mutex graphs_mutex_;
  std::list<DelegatedGraph> graphs_;
  std::string description_;
};

}  // namespace litebnn
