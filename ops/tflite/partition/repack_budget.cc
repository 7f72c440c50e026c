#include "tflite/partition/repack_budget.h"

#include <algorithm>
#include <unordered_map>

#include "tflite/runtime/node.h"

namespace litebnn {
namespace {

// The nodes of a model may hold kBytes bytes of memory, and kTimes bytes more for each byte of the model's constants.
// The factor kTimes is large, because the node of a layer with few channels and zero padding holds a dozen times the
// layer's size.
constexpr uint64_t kBytes = uint64_t{1} << 27;
constexpr uint64_t kTimes = 128;

}  // namespace

RepackBudget::RepackBudget(const TfLiteContext& context) {
  // Tensors that share their data count only once.
  std::unordered_map<const void*, size_t> constants;
  for (size_t i = 0; i < context.tensors_size; ++i) {
    const TfLiteTensor& tensor = context.tensors[i];
    if (!IsConstant(tensor) || tensor.data == nullptr) continue;
    size_t& bytes = constants[tensor.data];
    bytes = std::max(bytes, tensor.bytes);
  }
  left_ = kBytes;
  for (const auto& [data, bytes] : constants) left_ += kTimes * bytes;
}

bool RepackBudget::Take(size_t bytes) {
  if (bytes > left_) return false;
  left_ -= bytes;
  return true;
}

}  // namespace litebnn
