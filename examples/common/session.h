// A loaded model that is ready to run. The runtime is the one that the programs are built with: LiteRT in
// session_litert.cc, or TensorFlow Lite's C library in session_tflite.cc.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "common/error.h"
#include "common/op_times.h"

namespace litebnn::examples {

constexpr int kMostThreads = 256;  // the same as for litebnn's delegate

struct SessionOptions {
  std::string model;              // path of the .tflite file
  int num_threads = 1;            // 1 to kMostThreads
  bool lcompute = false;          // run the Lce ops with the library that is linked into the program
  bool xnnpack = false;           // let XNNPACK run float and quantized ops
  std::string external_delegate;  // path of a delegate library; empty for none
  bool profiling = false;         // measure each op
};

// Some types of tensor elements, with the runtimes' numbers.
enum class ElementType : int { kFloat32 = 1, kUInt8 = 3, kString = 5, kInt8 = 9 };

// An input or output of a model.
struct Tensor {
  std::string name;
  ElementType type;
  std::vector<int> shape;
  float scale;  // quantization scale; 0 if not quantized
  int zero_point;
};

class Session {
 public:
  virtual ~Session() = default;

  virtual std::vector<Tensor> inputs() const = 0;
  // The outputs with their shapes after the last run, because some models compute a shape while they run.
  virtual std::vector<Tensor> outputs() const = 0;

  // Bytes of an input. Throws Error for a string input.
  virtual size_t InputSize(size_t index) const = 0;
  // Copies InputSize(index) bytes into an input.
  virtual void FillInput(size_t index, const void* data) = 0;
  // Bytes of an output after the last run.
  virtual size_t OutputSize(size_t index) const = 0;
  // The content of an output, valid until the next run.
  virtual const void* OutputData(size_t index) = 0;

  // Runs the model once; returns the milliseconds that it took. Throws Error.
  virtual double Invoke() = 0;

  // The time of each op since the last reset; empty unless profiling was requested.
  virtual std::vector<OpTime> op_times() = 0;
  virtual void ResetOpTimes() = 0;
};

// Loads the model, sets up ops and delegates, and prepares it to run. Throws Error if anything fails.
std::unique_ptr<Session> LoadSession(const SessionOptions& options);

// Name and version of the runtime, such as "LiteRT 2.3.0".
std::string RuntimeName();

// Type and shape of a tensor, such as "float32 [1, 224, 224, 3]".
std::string Describe(const Tensor& tensor);

// Helpers of both implementations:
// - ReadModel: the content of a model file.
// - NoModel: the error for a file that is not a model.
// - ModelError: the error for an unusable model, which ends with the runtime's own message.
// - Refusal: a description of what the runtime refuses to do with a model.
std::string ReadModel(const std::string& path);
Error NoModel(const std::string& path);
Error ModelError(const std::string& path, const std::string& what, std::string reported);
std::string Refusal(const SessionOptions& options);

}  // namespace litebnn::examples
