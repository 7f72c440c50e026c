// Fuzzes the reader of a custom op's options: it must read or refuse any bytes, and a second lookup must give the same
// result.
#include <cstdlib>
#include <vector>

#include "tflite/ops/contract.h"
#include "tflite/runtime/flexbuffer_map.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace litebnn;
  constexpr const char* kNames[] = {
      contract::kChannelsIn,
      contract::kDilationHeightFactor,
      contract::kFilterWidth,
      contract::kFusedActivationFunction,
      contract::kPadLeft,
      contract::kPadValues,
      contract::kPadding,
      contract::kStrideWidth,
      "",
  };
  // The bytes are copied into a block of exactly their size, so that a sanitizer detects reads past the end.
  const std::vector<uint8_t> bytes(data, data + size);
  const FlexbufferMap map(bytes.data(), bytes.size());
  for (const char* name : kNames) {
    int64_t value = 0, again = 0;
    const FlexbufferMap::Lookup lookup = map.Find(name, &value);
    if (lookup != FlexbufferMap(bytes.data(), bytes.size()).Find(name, &again) || value != again) std::abort();
    if (!map.valid() && lookup != FlexbufferMap::Lookup::kMalformed) std::abort();
  }
  return 0;
}
