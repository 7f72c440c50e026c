#include "tflite/ops/add.h"

#include <algorithm>
#include <new>

#include "tflite/ops/op.h"

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
    const std::vector<int32_t>&first = node.Input(0)->shape, &second = node.Input(1)->shape;
    if (sum_.Resize(first, second, &node.outputs[0]->shape)) return true;
    return node.InputError(1, "shape: expected one that goes with %s, found %s", ShapeText(first).c_str(),
                           ShapeText(second).c_str());
  }

  void Run(ThreadPool& pool, const void* const* inputs, void* const* outputs, void*) const override {
    sum_.Run(pool, static_cast<const float*>(inputs[0]), static_cast<const float*>(inputs[1]), kRelu,
             static_cast<float*>(outputs[0]));
  }

 private:
  BroadcastSum sum_;
};

template <bool kRelu>
std::unique_ptr<Op> Create(const Isa&) {
  return std::unique_ptr<Op>(new (std::nothrow) Add<kRelu>);
}

// From the last dimension, 1 beyond the first.
int32_t SizeFromBack(const std::vector<int32_t>& shape, size_t i) {
  return i < shape.size() ? shape[shape.size() - 1 - i] : 1;
}

}  // namespace

bool BroadcastSum::Resize(const std::vector<int32_t>& first, const std::vector<int32_t>& second,
                          std::vector<int32_t>* sum) {
  const size_t rank = std::max(first.size(), second.size());
  sum->assign(rank, 1);
  axes_ = {{1, 0, 0}};
  values_ = 1;
  int64_t first_values = 1, second_values = 1;
  for (size_t i = 0; i < rank; ++i) {
    const int32_t a = SizeFromBack(first, i), b = SizeFromBack(second, i);
    if (a != b && a != 1 && b != 1) return false;
    const Axis axis = {std::max(a, b), a == 1 ? 0 : first_values, b == 1 ? 0 : second_values};
    (*sum)[rank - 1 - i] = static_cast<int32_t>(axis.size);
    values_ *= axis.size;
    first_values *= a;
    second_values *= b;
    Axis& inner = axes_.back();
    if (inner.size == 1) {
      inner = axis;
    } else if (axis.first_stride == inner.first_stride * inner.size &&
               axis.second_stride == inner.second_stride * inner.size) {
      inner.size *= axis.size;
    } else if (axis.size > 1) {
      axes_.push_back(axis);
    }
  }
  return true;
}

void BroadcastSum::Run(ThreadPool& pool, const float* first, const float* second, bool rectify, float* sum) const {
  struct Task {
    const std::vector<Axis>& axes;
    const float *first, *second;
    bool rectify;
    float* sum;
  };
  Task task = {axes_, first, second, rectify, sum};
  pool.ParallelFor(
      values_, kGrain,
      [](void* context, int, int64_t begin, int64_t end) {
        const Task& t = *static_cast<Task*>(context);
        const Axis& row = t.axes[0];
        for (int64_t count; begin < end; begin += count) {
          const float *a = t.first, *b = t.second;
          int64_t rest = begin;
          for (const Axis& axis : t.axes) {
            const int64_t index = rest % axis.size;
            rest /= axis.size;
            a += index * axis.first_stride;
            b += index * axis.second_stride;
          }
          count = std::min(row.size - begin % row.size, end - begin);
          for (int64_t i = 0; i < count; ++i) {
            const float value = a[i * row.first_stride] + b[i * row.second_stride];
            t.sum[begin + i] = t.rectify && !(value > 0.0f) ? 0.0f : value;
          }
        }
      },
      &task);
}

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
    if (!IsComputedImage(context, index)) return nullptr;
  }
  const TfLiteIntArray &first = *context.tensors[indices[0]].dims, &second = *context.tensors[indices[1]].dims;
  if (!std::equal(first.data, first.data + first.size, second.data)) return nullptr;
  return params->activation == kTfLiteActRelu ? &kAddReluOp : &kAddOp;
}

const OpType kAddOp = {"ADD", 2, 2, {"input 1", "input 2"}, Create<false>};
const OpType kAddReluOp = {"ADD with RELU", 2, 2, {"input 1", "input 2"}, Create<true>};

}  // namespace litebnn
