#include "tflite/partition/repack_budget.h"

#include <algorithm>
#include <unordered_map>

#include "tflite/runtime/node.h"

namespace litebnn {
namespace {

// What any model may repack, and how often a larger one its constants.
constexpr uint64_t kBytes = uint64_t{1} << 24;
constexpr unsigned kTimes = 16;

}  // namespace

RepackBudget::RepackBudget(const TfLiteContext& context) {
  // Tensors may share their data too.
  std::unordered_map<const void*, size_t> constants;
  for (size_t i = 0; i < context.tensors_size; ++i) {
    const TfLiteTensor& tensor = context.tensors[i];
    if (!IsConstant(tensor) || tensor.data == nullptr) continue;
    size_t& bytes = constants[tensor.data];
    bytes = std::max(bytes, tensor.bytes);
  }
  left_ = kBytes;
  for (const auto& [data, bytes] : constants) left_ += uint64_t{kTimes} * bytes;
}

bool RepackBudget::Take(TfLiteContext* context, const TfLiteNode& node) {
  for (int i = 0; i < node.inputs->size; ++i) {
    const int input = node.inputs->data[i];
    if (input < 0 || static_cast<size_t>(input) >= context->tensors_size) continue;
    const TfLiteTensor& tensor = context->tensors[input];
    if (!IsConstant(tensor)) continue;
    if (tensor.bytes > left_) {
      context->ReportError(context,
                           "litebnn: tensor %d '%.100s': expected constants that nodes share at most %u times, found "
                           "more. ",
                           input, tensor.name == nullptr ? "" : tensor.name, kTimes);
      return false;
    }
    left_ -= tensor.bytes;
  }
  return true;
}

}  // namespace litebnn
