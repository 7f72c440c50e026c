// A model loaded into TensorFlow Lite's C library, ready to run.
#pragma once

#include <cstdarg>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/op_profiler.h"
#include "tensorflow/lite/c/c_api.h"

namespace litebnn::examples {

constexpr int kMostThreads = 256;  // as for litebnn's delegate

struct SessionOptions {
  std::string model;              // path of the .tflite file
  int num_threads = 1;            // 1 to kMostThreads
  bool lcompute = false;          // register the ops that are linked into the program
  bool xnnpack = false;           // hand float and quantized ops to XNNPACK
  std::string external_delegate;  // path of a delegate library; empty for none
  bool profiling = false;         // measure each op
};

class Session {
 public:
  // Loads the model, registers ops and delegates, and allocates the tensors. Throws Error where any of it fails.
  explicit Session(const SessionOptions& options);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  int num_inputs() const { return TfLiteInterpreterGetInputTensorCount(interpreter_.get()); }
  int num_outputs() const { return TfLiteInterpreterGetOutputTensorCount(interpreter_.get()); }
  TfLiteTensor* input(int index) { return TfLiteInterpreterGetInputTensor(interpreter_.get(), index); }
  const TfLiteTensor* output(int index) const { return TfLiteInterpreterGetOutputTensor(interpreter_.get(), index); }

  // Runs the model once. Throws Error.
  void Invoke();

  // The time of each op since the last reset; empty unless profiling was asked for.
  std::vector<OpTime> op_times() const { return profiler_ ? profiler_->Times() : std::vector<OpTime>(); }
  void ResetOpTimes() {
    if (profiler_) profiler_->Reset();
  }

 private:
  using Delegate = std::unique_ptr<TfLiteDelegate, std::function<void(TfLiteDelegate*)>>;

  static void Report(void* session, const char* format, va_list arguments);
  void AddXnnpack(int num_threads);
  void AddExternalDelegate(const std::string& path);
  // An error that ends in what the runtime reported.
  [[noreturn]] void Fail(const std::string& what) const;

  // The interpreter uses all that stands above it, so it is destroyed first.
  std::string path_;
  std::string model_bytes_;
  std::string reported_;
  std::vector<Delegate> delegates_;
  std::unique_ptr<OpProfiler> profiler_;
  std::unique_ptr<TfLiteModel, decltype(&TfLiteModelDelete)> model_{nullptr, TfLiteModelDelete};
  std::unique_ptr<TfLiteInterpreter, decltype(&TfLiteInterpreterDelete)> interpreter_{nullptr, TfLiteInterpreterDelete};
};

// Type and shape of a tensor, such as "float32 [1, 224, 224, 3]".
std::string Describe(const TfLiteTensor* tensor);

}  // namespace litebnn::examples
