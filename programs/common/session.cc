#include "common/session.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "common/files.h"

namespace litebnn::programs {
namespace {

// The largest size of a model file in bytes, because the file format has signed 32-bit offsets.
constexpr size_t kLargestModel = (size_t{1} << 31) - 1;

}  // namespace

std::string Describe(const Tensor& tensor) {
  constexpr const char* kNames[] = {"notype", "float32", "int32",     "uint8", "int64",   "string",
                                    "bool",   "int16",   "complex64", "int8",  "float16", "float64"};
  const auto number = static_cast<size_t>(tensor.type);
  std::string text = number < std::size(kNames) ? kNames[number] : Format("type %zu", number);
  text += " [";
  for (size_t i = 0; i < tensor.shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(tensor.shape[i]);
  return text + "]";
}

std::vector<char> RandomInput(ElementType type, size_t size, uint32_t& random) {
  std::vector<char> bytes(size);
  const auto next = [&random] {
    random ^= random << 13;
    random ^= random >> 17;
    return random ^= random << 5;
  };
  if (type == ElementType::kFloat32) {
    for (size_t at = 0; at + sizeof(float) <= size; at += sizeof(float)) {
      const float value = static_cast<float>(next() >> 25) / 64 - 1;
      std::memcpy(&bytes[at], &value, sizeof value);
    }
  } else {
    for (char& byte : bytes) byte = static_cast<char>(next() >> 24);
  }
  return bytes;
}

std::string ReadModel(const std::string& path) { return ReadFile(path, "model", kLargestModel); }

Error NoModel(const std::string& path) { return Error(path + " is no .tflite model, or is cut off"); }

std::string Refusal(const SessionOptions& options) {
  const bool delegates = options.lcompute || options.xnnpack || !options.external_delegate.empty();
  return std::string("the runtime refuses the model") + (delegates ? " with the delegates that were asked for" : "");
}

void RefuseOpenSizes(const std::string& path, const TfLiteTensor& input) {
  const TfLiteIntArray* sizes = input.dims_signature;
  for (int i = 1; sizes != nullptr && i < sizes->size; ++i) {
    if (sizes->data[i] < 0) throw ModelError(path, Format("the input %s leaves its size open", input.name), "");
  }
}

Error ModelError(const std::string& path, const std::string& what, std::string reported) {
  std::replace(reported.begin(), reported.end(), '\n', ' ');
  reported.erase(reported.find_last_not_of(' ') + 1);
  std::string line = path + ": " + what;
  if (!reported.empty()) line += ": " + reported;
  const auto reports = [&reported](const char* text) { return reported.find(text) != std::string::npos; };
  if (reports("unresolved custom op: Lce") || reports("unresolved custom op: Litebnn")) {
    line += " Add --lcompute 1 for litebnn's ops.";
  }
  if (reports("builtin_code out of range")) {
    line += Format(" It needs a newer runtime than %s.", RuntimeName().c_str());
  }
  return Error(line);
}

}  // namespace litebnn::programs
