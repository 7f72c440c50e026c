// The options of a custom op, as a model stores them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace litebnn::testing {

using Options = std::map<std::string, int64_t>;

// Encodes options as a FlexBuffer map of 8-byte integers.
std::vector<uint8_t> EncodeOptions(const Options& options);

}  // namespace litebnn::testing
