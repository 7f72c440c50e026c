// A runtime as small as it can be, to run litebnn's ops under sanitizers: the calls, and their order, of TensorFlow
// Lite's interpreter. Every tensor has a block of memory of its own, exactly as large as it has to be, so that a
// sanitizer sees each step over its end. It checks less than the real one, to let more of what is wrong through.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "litebnn/litebnn.h"
#include "tflite/runtime/abi.h"

namespace litebnn::testing {

struct GraphTensor {
  TfLiteType type = kTfLiteInt32;
  std::vector<int> shape;
  TfLiteQuantizationParams quantization = {};
  std::vector<uint8_t> constant;  // empty where the tensor is none
  bool misaligned = false;        // constants only: at an odd address
};

struct GraphNode {
  // A custom op's name, or that of one of the runtime's own which FindFakeBuiltin knows.
  std::string op;
  std::vector<int> inputs, outputs;
  std::vector<uint8_t> options;
  std::vector<int> builtin;  // the options that the runtime would have read
  bool unclaimed = false;    // the delegate is given the node though it has not claimed it
};

struct Graph {
  std::vector<GraphTensor> tensors;
  std::vector<GraphNode> nodes;
  std::vector<int> inputs, outputs;
};

class FakeRuntime {
 public:
  // The ops as custom operators.
  explicit FakeRuntime(const Graph& graph, int num_threads = 1);
  // The ops through `delegate`, which outlives the runtime, in partitions of at most `partition_size` nodes.
  FakeRuntime(const Graph& graph, ::TfLiteDelegate* delegate, size_t partition_size, int num_threads = 1);
  ~FakeRuntime();
  FakeRuntime(const FakeRuntime&) = delete;

  bool Resize(int tensor, const std::vector<int>& shape);
  // Prepares all nodes and allocates all tensors.
  bool Allocate();
  // Gives every input of the graph the same bytes for the same seed.
  void FillInputs(uint32_t seed);
  bool Invoke();

  // The bytes of all outputs of the graph, with one NaN for all.
  std::vector<uint8_t> Outputs() const;
  // A hash of the outputs that allocates nothing.
  uint64_t OutputHash() const;
  const TfLiteTensor& tensor(int index) const { return tensors_[static_cast<size_t>(index)]; }
  // What was reported so far.
  const std::string& errors() const { return errors_; }
  size_t tensor_bytes() const;

  // Tensors together larger than this are refused.
  static constexpr size_t kMaxBytes = size_t{1} << 26;

 private:
  // The interpreter keeps its nodes like this; on 32-bit machines the delegate looks at how far they are apart.
  struct RuntimeNode {
    TfLiteNode node;
    TfLiteRegistrationArgument registration;
  };
  using IntArray = std::unique_ptr<TfLiteIntArray, void (*)(void*)>;
  struct FreeBlock {
    void operator()(void* block) const;
  };

  TfLiteIntArray* NewArray(const std::vector<int>& values);
  TfLiteRegistration* RegistrationOf(int node);
  void AddNode(const GraphNode& node);
  void AddNodeOfOthers();
  void Delegate(::TfLiteDelegate* delegate);
  TfLiteStatus ReplaceNodes(const TfLiteRegistration& registration, const TfLiteIntArray& nodes,
                            litebnn::TfLiteDelegate* delegate);
  // Those that there are.
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
  std::vector<RuntimeNode> nodes_;
  std::vector<std::vector<char>> options_;
  std::vector<int> plan_;
  size_t partition_size_ = 0;
  bool broken_ = false;
  std::string errors_;
};

}  // namespace litebnn::testing
