#include "tests/support/options.h"

namespace litebnn::testing {

std::vector<uint8_t> EncodeOptions(const Options& options) {
  constexpr size_t kWidth = 8;
  std::vector<uint8_t> bytes;
  const auto append = [&bytes](uint64_t value) {
    for (size_t i = 0; i < kWidth; ++i) bytes.push_back(static_cast<uint8_t>(value >> (8 * i)));
  };
  std::vector<size_t> keys;
  for (const auto& [key, value] : options) {
    keys.push_back(bytes.size());
    bytes.insert(bytes.end(), key.begin(), key.end());
    bytes.push_back(0);
  }
  append(options.size());
  const size_t key_vector = bytes.size();
  for (size_t key : keys) append(bytes.size() - key);
  append(bytes.size() - key_vector);
  append(kWidth);
  append(options.size());
  const size_t values = bytes.size();
  for (const auto& [key, value] : options) append(static_cast<uint64_t>(value));
  // In a FlexBuffer, one byte has the type and the width of a value. Here each value is an 8-byte integer, and the root
  // is a map of 8-byte values.
  bytes.insert(bytes.end(), options.size(), 1 << 2 | 3);
  append(bytes.size() - values);
  bytes.push_back(9 << 2 | 3);
  bytes.push_back(kWidth);
  return bytes;
}

}  // namespace litebnn::testing
