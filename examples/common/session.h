// A model loaded into the runtime that the programs are built on, ready to run: LiteRT in session_litert.cc, or
// TensorFlow Lite's C library in session_tflite.cc.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "common/error.h"
#include "common/op_times.h"

namespace litebnn::examples {

constexpr int kMostThreads = 256;  // as for litebnn's delegate

struct SessionOptions {
  std::string model;              // path of the .tflite file
  int num_threads = 1;            // 1 to kMostThreads
  bool lcompute = false;          // run the Lce ops by what is linked into the program
  bool xnnpack = false;           // hand float and quantized ops to XNNPACK
  std::string external_delegate;  // path of a delegate library; empty for none
  bool profiling = false;         // measure each op
};

// Types of a tensor's elements, by their numbers in the runtimes; there are more.
enum class ElementType : int { kFloat32 = 1, kUInt8 = 3, kString = 5, kInt8 = 9 };

// An input or output of a model.
struct Tensor {
  std::string name;
  ElementType type;
  std::vector<int> shape;
  float scale;  // of quantized values; 0 where they are none
  int zero_point;
};

class Session {
 public:
  virtual ~Session() = default;

  virtual std::vector<Tensor> inputs() const = 0;
  // Some models compute a shape as they run, so these are the outputs of the last run.
  virtual std::vector<Tensor> outputs() const = 0;

  // Bytes that an input holds. Throws Error for an input of text.
  virtual size_t InputSize(size_t index) const = 0;
  // Copies InputSize(index) bytes into an input.
  virtual void FillInput(size_t index, const void* data) = 0;
  // Bytes that an output held after the last run.
  virtual size_t OutputSize(size_t index) const = 0;
  // The content of an output, valid until the next run.
  virtual const void* OutputData(size_t index) = 0;

  // Runs the model once; returns the milliseconds that it took. Throws Error.
  virtual double Invoke() = 0;

  // The time of each op since the last reset; empty unless profiling was asked for.
  virtual std::vector<OpTime> op_times() = 0;
  virtual void ResetOpTimes() = 0;
};

// Loads the model, sets up ops and delegates, and prepares it to run. Throws Error where any of it fails.
std::unique_ptr<Session> LoadSession(const SessionOptions& options);

// Name and version of the runtime, such as "LiteRT 2.3.0".
std::string RuntimeName();

// Type and shape of a tensor, such as "float32 [1, 224, 224, 3]".
std::string Describe(const Tensor& tensor);

// For the files behind the interface: the content of a model's file; the errors for one that is no model, and for a
// model that cannot be used, which ends in what the runtime `reported`; and what a runtime does not do to a model.
std::string ReadModel(const std::string& path);
Error NoModel(const std::string& path);
Error ModelError(const std::string& path, const std::string& what, std::string reported);
std::string Refusal(const SessionOptions& options);

}  // namespace litebnn::examples
