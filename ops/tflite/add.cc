#include "tflite/add.h"

#include <cstring>
#include <new>

#include "tflite/op.h"

namespace litebnn {
namespace {

// Values below which another thread costs more than it saves.
constexpr int64_t kGrain = 16384;

// By itself it runs only where the convolution's output has another reader.
template <bool kRelu>
class Add final : public Op {
 public:
  bool Prepare(const Node& node) override {
    if (!node.CheckInputType(0, {kTfLiteFloat32}) || !node.CheckInputType(1, {kTfLiteFloat32})) return false;
    if (!node.CheckOutputType({kTfLiteFloat32})) return false;
    const std::vector<int32_t>& shape = node.Input(0)->shape;
    if (node.Input(1)->shape != shape) {
      return node.InputError(1, "shape: expected %s, found %s", ShapeText(shape).c_str(),
                             ShapeText(node.Input(1)->shape).c_str());
    }
    values_ = CountValues(shape, 0, shape.size());
    node.outputs[0]->shape = shape;
    return true;
  }

  void Run(ThreadPool& pool, const void* const* inputs, void* const* outputs, void*) const override {
    struct Task {
      const float *first, *second;
      float* sum;
    };
    Task task = {static_cast<const float*>(inputs[0]), static_cast<const float*>(inputs[1]),
                 static_cast<float*>(outputs[0])};
    pool.ParallelFor(
        values_, kGrain,
        [](void* context, int, int64_t begin, int64_t end) {
          const Task& t = *static_cast<Task*>(context);
          for (int64_t i = begin; i < end; ++i) {
            const float sum = t.first[i] + t.second[i];
            t.sum[i] = kRelu && !(sum > 0.0f) ? 0.0f : sum;
          }
        },
        &task);
  }

 private:
  int64_t values_ = 0;
};

template <bool kRelu>
std::unique_ptr<Op> Create(const Kernels&) {
  return std::unique_ptr<Op>(new (std::nothrow) Add<kRelu>);
}

}  // namespace

const OpType* FindAddition(const TfLiteContext& context, const TfLiteRegistration& registration,
                           const TfLiteNode& node) {
  if (registration.builtin_code != kTfLiteBuiltinAdd || registration.custom_name != nullptr) return nullptr;
  const auto* params = static_cast<const TfLiteAddParams*>(node.builtin_data);
  if (params == nullptr || (params->activation != kTfLiteActNone && params->activation != kTfLiteActRelu)) {
    return nullptr;
  }
  if (node.inputs->size != 2 || node.outputs->size != 1) return nullptr;
  const int indices[] = {node.inputs->data[0], node.inputs->data[1], node.outputs->data[0]};
  for (int index : indices) {
    if (index < 0 || static_cast<size_t>(index) >= context.tensors_size) return nullptr;
    const TfLiteTensor& tensor = context.tensors[index];
    const bool constant = tensor.allocation_type == kTfLiteMmapRo || tensor.allocation_type == kTfLitePersistentRo;
    if (tensor.type != kTfLiteFloat32 || tensor.dims == nullptr || constant) return nullptr;
  }
  const TfLiteIntArray &first = *context.tensors[indices[0]].dims, &second = *context.tensors[indices[1]].dims;
  // A convolution's rank; a shape that the model does not tell has another.
  constexpr int kRank = 4;
  if (first.size != kRank || second.size != kRank || std::memcmp(first.data, second.data, sizeof(int) * kRank) != 0) {
    return nullptr;
  }
  return params->activation == kTfLiteActRelu ? &kAddReluOp : &kAddOp;
}

const OpType kAddOp = {"ADD", 2, 2, {"input 1", "input 2"}, Create<false>};
const OpType kAddReluOp = {"ADD with RELU", 2, 2, {"input 1", "input 2"}, Create<true>};

}  // namespace litebnn
