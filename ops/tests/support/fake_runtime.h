// A minimal runtime that runs litebnn's ops under sanitizers. It makes the same calls as TensorFlow Lite's interpreter,
// in the same order. Every tensor has a memory block of exactly its size, so that a sanitizer detects accesses past the
// end. It checks less than the real runtime, so that more invalid models reach the ops.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "litebnn/litebnn.h"
#include "tflite/runtime/abi.h"

namespace litebnn::testing {

// Quantization arrays of a tensor, which a runtime keeps in addition to the single scale and zero point.
struct GridArrays {
  std::vector<float> scales;
  std::vector<int> zero_points;
  int dimension = 0;
};

struct GraphTensor {
  TfLiteType type = kTfLiteInt32;
  std::vector<int> shape;
  TfLiteQuantizationParams quantization = {};
  std::vector<uint8_t> constant;  // empty if the tensor is not constant
  bool misaligned = false;        // constants only: at an odd address
  GridArrays grids = {};          // an empty array is left out; none if both are empty
};

struct GraphNode {
  // The name of a custom op, or of a builtin op that FindFakeBuiltin knows.
  std::string op;
  std::vector<int> inputs, outputs;
  std::vector<uint8_t> options;
  std::vector<int> builtin;  // options that the runtime would have parsed
  bool unclaimed = false;    // passed to the delegate although it has not claimed the node
};

struct Graph {
  std::vector<GraphTensor> tensors;
  std::vector<GraphNode> nodes;
  std::vector<int> inputs, outputs;
};

class FakeRuntime {
 public:
  // A runtime that runs the ops of a graph as custom ops, without a delegate.
  explicit FakeRuntime(const Graph& graph, int num_threads = 1);
  // A runtime that runs the ops through `delegate`, in partitions of at most `partition_size` nodes. The delegate must
  // outlive the runtime.
  FakeRuntime(const Graph& graph, ::TfLiteDelegate* delegate, size_t partition_size, int num_threads = 1);
  ~FakeRuntime();
  FakeRuntime(const FakeRuntime&) = delete;

  bool Resize(int tensor, const std::vector<int>& shape);
  // Prepares all nodes and allocates all tensors. Returns false on an error.
  bool Allocate();
  // Fills every input of the graph with bytes that depend only on the seed.
  void FillInputs(uint32_t seed);
  bool Invoke();

  // The bytes of all outputs of the graph. Every NaN in them is replaced by the same NaN.
  std::vector<uint8_t> Outputs() const;
  // A hash of the outputs, which is computed without allocating memory.
  uint64_t OutputHash() const;
  const TfLiteTensor& tensor(int index) const { return tensors_[static_cast<size_t>(index)]; }
  // The text of all errors that were reported so far.
  const std::string& errors() const { return errors_; }
  size_t tensor_bytes() const;

  // The maximum size in bytes of all tensors together. Larger graphs are refused.
  static constexpr size_t kMaxBytes = size_t{1} << 26;

 private:
  // A node in the interpreter's own memory layout. The delegate inspects its size on 32-bit machines.
  struct RuntimeNode {
    TfLiteNode node;
    TfLiteRegistrationArgument registration;
  };
  using IntArray = std::unique_ptr<TfLiteIntArray, void (*)(void*)>;
  using FloatArray = std::unique_ptr<TfLiteFloatArray, void (*)(void*)>;
  struct FreeBlock {
    void operator()(void* block) const;
  };

  TfLiteIntArray* NewArray(const std::vector<int>& values);
  TfLiteAffineQuantization* NewQuantization(const GridArrays& grids);
  TfLiteRegistration* RegistrationOf(int node);
  void AddNode(const GraphNode& node);
  void AddNodeOfOthers();
  void Delegate(::TfLiteDelegate* delegate);
  TfLiteStatus ReplaceNodes(const TfLiteRegistration& registration, const TfLiteIntArray& nodes,
                            litebnn::TfLiteDelegate* delegate);
  // The given indices without kOptionalTensor, which stands for an optional tensor that is left out.
  std::vector<int> TensorsOf(const TfLiteIntArray& indices) const;
  int AddPartition(const TfLiteRegistration& registration, const std::vector<int>& members,
                   litebnn::TfLiteDelegate* delegate);
  void AllowDelegateCalls(bool allowed);
  static void ReportError(TfLiteContext* context, const char* message, ...);
  static FakeRuntime* Of(TfLiteContext* context) { return static_cast<FakeRuntime*>(context->impl_); }

  Graph graph_;
  TfLiteContext context_ = {};
  std::vector<TfLiteTensor> tensors_;
  std::vector<std::unique_ptr<void, FreeBlock>> blocks_;
  std::vector<IntArray> arrays_;
  std::vector<FloatArray> float_arrays_;
  std::vector<std::unique_ptr<TfLiteAffineQuantization>> quantizations_;
  std::vector<RuntimeNode> nodes_;
  std::vector<std::vector<char>> options_;
  std::vector<int> plan_;
  size_t partition_size_ = 0;
  bool broken_ = false;
  std::string errors_;
};

}  // namespace litebnn::testing
