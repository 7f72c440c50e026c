// A loaded model that is ready to run. The runtime is the one with which the programs are built: LiteRT in
// session_litert.cc, or TensorFlow Lite's C library in session_tflite.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/error.h"
#include "common/times.h"
#include "tflite/runtime/abi.h"

namespace litebnn::programs {

constexpr int kMostThreads = 256;  // the same as for litebnn's delegate

struct SessionOptions {
  std::string model;              // path of the .tflite file
  int num_threads = 1;            // 1 to kMostThreads
  bool lcompute = false;          // run litebnn's ops with the library that is linked into the program
  bool xnnpack = false;           // let XNNPACK run float and quantized ops
  std::string external_delegate;  // path of a delegate library; empty for none
  bool profiling = false;         // measure each op
  bool keep_state = false;        // keep the model's variables from one run to the next
};

// Some element types of tensors, with the numbers that the runtimes give them.
enum class ElementType : int { kFloat32 = 1, kUInt8 = 3, kString = 5, kInt8 = 9 };

// The description of an input or output tensor of a model.
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
  // Returns the outputs with their shapes after the last run, because some models compute an output's shape while they
  // run.
  virtual std::vector<Tensor> outputs() const = 0;

  // Returns the size of an input in bytes. Throws Error for a string input.
  virtual size_t InputSize(size_t index) const = 0;
  // Copies the data of an input, InputSize(index) bytes, into the model.
  virtual void FillInput(size_t index, const void* data) = 0;
  // Returns the size of an output in bytes after the last run.
  virtual size_t OutputSize(size_t index) const = 0;
  // Returns the content of an output, which is valid until the next run.
  virtual const void* OutputData(size_t index) = 0;

  // Runs the model once, with its variables' initial values unless SessionOptions keeps them; returns the milliseconds
  // of the run. Throws Error.
  virtual double Invoke() = 0;

  // Returns the time of each op since the last reset; empty unless profiling was requested.
  virtual std::vector<OpTime> op_times() = 0;
  virtual void ResetOpTimes() = 0;
};

// Loads a model, sets up its ops and delegates, and prepares it to run. Throws Error if anything fails.
std::unique_ptr<Session> LoadSession(const SessionOptions& options);

// Returns name and version of the runtime, such as "LiteRT 2.3.0".
std::string RuntimeName();

constexpr uint32_t kRandomSeed = 2463534242;
// Makes the random content of an input of `size` bytes: floats from -1 to 1 with few mantissa bits, and any bytes for
// other types. `random` is the state of the generator; kRandomSeed gives the same content on every board.
std::vector<char> RandomInput(ElementType type, size_t size, uint32_t& random);

// Returns type and shape of a tensor as text, such as "float32 [1, 224, 224, 3]".
std::string Describe(const Tensor& tensor);

// The following functions help both implementations of Session:
// - ReadModel: the content of a model file.
// - NoModel: the error for a file that is not a model.
// - ModelError: the error for an unusable model, which ends with the runtime's own message.
// - Refusal: a description of what the runtime refuses to do with a model.
// - RefuseOpenSizes: throws an error if the model leaves a size of an input open, other than the batch.
std::string ReadModel(const std::string& path);
Error NoModel(const std::string& path);
Error ModelError(const std::string& path, const std::string& what, std::string reported);
std::string Refusal(const SessionOptions& options);
void RefuseOpenSizes(const std::string& path, const TfLiteTensor& input);

}  // namespace litebnn::programs
