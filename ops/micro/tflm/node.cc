#include "node.h"

#include <limits>

#include "tensorflow/lite/micro/micro_log.h"

namespace tflite {
namespace micro {
namespace lce {

Op OpAt(int index) {
  switch (index) {
    case 0:
      return QuantizeOp();
    case 1:
      return DequantizeOp();
    case 2:
      return Bconv2dOp();
    default:
      return BMaxPool2dOp();
  }
}

bool Node::Error(const char* problem) const {
  MicroPrintf("%s: %s", op_, problem);
  return false;
}

bool Node::Error(const char* name, const char* expected, int32_t found) const {
  MicroPrintf("%s: %s: expected %s, found %d", op_, name, expected, static_cast<int>(found));
  return false;
}

bool Node::CheckArity(int least, int most) const {
  if (node_->inputs->size < least || node_->inputs->size > most) {
    return Error("inputs", "another number", node_->inputs->size);
  }
  if (node_->outputs->size != 1) return Error("outputs", "1", node_->outputs->size);
  return node_->user_data != nullptr || Error("memory", "some for its state", 0);
}

bool Node::HasInput(int index) const { return index < node_->inputs->size && node_->inputs->data[index] >= 0; }

bool Node::ReadInput(int index, Tensor* tensor) const {
  if (!HasInput(index)) return Error(input_names_[index], "a tensor", 0);
  return Read(input_names_[index], node_->inputs->data[index], tensor);
}

bool Node::ReadOutput(Tensor* tensor) const { return Read("output", node_->outputs->data[0], tensor); }

bool Node::Read(const char* name, int index, Tensor* tensor) const {
  auto* const context = GetMicroContext(context_);
  const TfLiteEvalTensor* const eval = context->GetEvalTensor(index);
  TfLiteTensor* const full = context->AllocateTempTfLiteTensor(index);
  if (eval == nullptr || full == nullptr) return Error(name, "memory for a tensor", 0);
  tensor->type = eval->type;
  tensor->dims = eval->dims;
  tensor->constant = full->allocation_type == kTfLiteMmapRo ? eval->data.data : nullptr;
  tensor->scale = full->params.scale;
  tensor->zero_point = full->params.zero_point;
  context->DeallocateTempTfLiteTensor(full);

  if (tensor->rank() < 1) return Error(name, "at least 1 dimension", tensor->rank());
  int64_t values = 1;
  for (int axis = 0; axis < tensor->rank(); ++axis) {
    if (tensor->size(axis) < 1) return Error(name, "sizes of 1 or more", tensor->size(axis));
    values *= tensor->size(axis);
    if (values > std::numeric_limits<int32_t>::max()) return Error(name, "at most 2147483647 values", axis);
  }
  return true;
}

bool Node::CheckQuantization(const char* name, const Tensor& tensor) const {
  // The expression scale - scale is 0 for a finite scale and NaN for an infinite one, which is refused.
  if (!(tensor.scale > 0) || !(tensor.scale - tensor.scale == 0)) return Error(name, "a scale above 0", 0);
  if (tensor.zero_point < -128 || tensor.zero_point > 127) {
    return Error(name, "a zero point of -128 to 127", tensor.zero_point);
  }
  return true;
}

bool Node::CheckOutputShape(const Tensor& output, const int32_t (&expected)[4]) const {
  if (output.rank() != 4) return Error("output", "4 dimensions", output.rank());
  for (int axis = 0; axis < 4; ++axis) {
    if (output.size(axis) != expected[axis]) {
      MicroPrintf("%s: output: expected size %d of axis %d, found %d", op_, static_cast<int>(expected[axis]), axis,
                  static_cast<int>(output.size(axis)));
      return false;
    }
  }
  return true;
}

void* Node::Allocate(int64_t bytes) const {
  void* const memory = bytes <= std::numeric_limits<int32_t>::max()
                           ? GetMicroContext(context_)->AllocatePersistentBuffer(static_cast<size_t>(bytes))
                           : nullptr;
  if (memory == nullptr) Error("memory", "a larger arena", 0);
  return memory;
}

bool Node::RequestScratch(int32_t words, int* index) const {
  const size_t bytes = static_cast<size_t>(words) * sizeof(uint32_t);
  return GetMicroContext(context_)->RequestScratchBufferInArena(bytes, index) == kTfLiteOk ||
         Error("memory", "a larger arena", 0);
}

int32_t RowsOf(const Tensor& tensor) {
  int32_t rows = 1;
  for (int axis = 0; axis + 1 < tensor.rank(); ++axis) rows *= tensor.size(axis);
  return rows;
}

bool Slide(const Node& node, const Axis& axis, int32_t padding, int32_t* output, int32_t* before) {
  const int64_t reach = static_cast<int64_t>(axis.filter - 1) * axis.dilation + 1;
  const int64_t padded = static_cast<int64_t>(axis.input) + axis.before + axis.after;
  const bool is_same = padding == contract::kPaddingSame;
  if (!is_same && reach > padded) return node.Error(axis.name, "a filter that fits the input", axis.filter);
  const int64_t steps = is_same ? (static_cast<int64_t>(axis.input) - 1) / axis.stride : (padded - reach) / axis.stride;
  const int64_t covered = steps * axis.stride + reach;
  // The kernels also compute the positions of the window after the last one, and of the tap after a window's last tap.
  // These positions must not overflow an int32_t.
  const int64_t next_window = steps == 0 ? axis.stride : (steps + 1) * axis.stride;
  const int64_t next_tap = covered + (axis.filter == 1 ? 0 : axis.dilation);
  const int64_t most = std::numeric_limits<int32_t>::max();
  if (padded > most || next_window > most || next_tap > most) {
    return node.Error(axis.name, "at most 2147483647 with its padding", axis.input);
  }
  *output = static_cast<int32_t>(steps + 1);
  *before = axis.before;
  if (is_same) *before = static_cast<int32_t>(covered > axis.input ? (covered - axis.input) / 2 : 0);
  return true;
}

}  // namespace lce
}  // namespace micro
}  // namespace tflite
