// The delegate: claims the nodes that litebnn computes and leaves all others to the runtime.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "kernels/kernels.h"
#include "kernels/platform/thread_pool.h"
#include "tflite/partition/arena.h"
#include "tflite/runtime/abi.h"

namespace litebnn {

struct DelegateOptions {
  std::optional<int> num_threads;  // the runtime's recommendation if not given
  const Isa* isa = nullptr;
  bool verbose = false;
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

 private:
  const DelegateOptions options_;
  TfLiteDelegate c_delegate_ = {};
  std::mutex pool_mutex_;
  std::unique_ptr<ThreadPool> pool_;
  std::mutex run_mutex_;
  Arena arena_;
};

}  // namespace litebnn
