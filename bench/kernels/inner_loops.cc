#include "inner_loops.h"

#include <cstring>

#include "kernels/platform/x86_cpu.h"

namespace litebnn {

Loops LoopsOf(const char* isa) {
#if LITEBNN_X86
  if (std::strcmp(isa, "avx2") == 0) return {InnerLoopAvx2, OutputLoopAvx2};
  if (std::strcmp(isa, "avx512") == 0) return {InnerLoopAvx512, OutputLoopAvx512};
  if (std::strcmp(isa, "avx512_vbmi") == 0) return {InnerLoopAvx512Vbmi, OutputLoopAvx512Vbmi};
#endif
  static_cast<void>(isa);
  return {};
}

uint64_t ReadAll(const float* values, int64_t count) {
  // The loop keeps eight separate sums, so that no addition waits for the one before it.
  uint64_t sums[8] = {};
  const auto* bytes = reinterpret_cast<const char*>(values);
  for (int64_t i = 0; i + 16 <= count; i += 16) {
    uint64_t words[8];
    std::memcpy(words, bytes + i * 4, sizeof(words));
    for (int j = 0; j < 8; ++j) sums[j] += words[j];
  }
  return sums[0] + sums[1] + sums[2] + sums[3] + sums[4] + sums[5] + sums[6] + sums[7];
}

}  // namespace litebnn
