#include "tflite/partition/repack_budget.h"

#include <algorithm>
#include <unordered_map>

#include "tflite/runtime/node.h"

namespace litebnn {
namespace {

// The limit for the memory that a model's nodes hold. It is a fixed number of bytes, and a number of bytes for each
// byte of constants. The second number is large, because a layer with few channels and zero padding holds a dozen times
// its own size.
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
