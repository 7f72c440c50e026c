#include "tflite/ops/broadcast_sum.h"

#include <algorithm>
#include <limits>

#include "kernels/platform/aligned_buffer.h"

namespace litebnn {
namespace {

// The size of dimension `i`, counted from the last dimension; 1 if the shape has no such dimension.
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
  Run(pool, first, second, sum, [rectify](float a, float b) {
    const float value = a + b;
    return rectify && !(value > 0.0f) ? 0.0f : value;
  });
}

bool ReserveImage(const Node& node, size_t bytes, size_t* reserved) {
  *reserved = AlignUp(bytes);
  // The limit on an image's bytes is a quarter of the address space, so that sums of such sizes do not overflow.
  if (bytes <= std::numeric_limits<size_t>::max() / 4) return true;
  return node.OutputError("shape: expected one that there is memory for, found %s",
                          ShapeText(node.outputs[0]->shape).c_str());
}

bool FusedSum::Resize(const Node& node, size_t position) {
  const Tensor* const addend = node.Input(position);
  has_addend_ = addend != nullptr;
  rectifies_ = has_addend_ && static_cast<const TfLiteAddParams*>(node.builtin_data)->activation == kTfLiteActRelu;
  computed_bytes_ = 0;
  const std::vector<int32_t> computed = node.outputs[0]->shape;
  if (!has_addend_) return true;
  if (!node.CheckInputType(position, {kTfLiteFloat32})) return false;
  if (addend->shape == computed) return true;
  if (!ReserveImage(node, TensorBytes(*node.outputs[0]), &computed_bytes_)) return false;
  if (sum_.Resize(computed, addend->shape, &node.outputs[0]->shape)) return true;
  return node.InputError(position, "shape: expected one that goes with %s, found %s", ShapeText(computed).c_str(),
                         ShapeText(addend->shape).c_str());
}

}  // namespace litebnn
