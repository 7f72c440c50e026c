// Tests of the scalar arithmetic that serves as the reference for the vector arithmetic of each ISA.
#include "kernels/isa/shared/lanes.h"

#include <gtest/gtest.h>

#include <limits>

namespace litebnn {
namespace {

TEST(OneLane, DotsOfTheLongestFilterAreInRange) {
  constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
  for (const int32_t sum : {0, 1, (1 << 30) - 1, 1 << 30, kMax - 1, kMax}) {
    EXPECT_EQ(OneLane::Dots(kMax, &sum), int64_t{kMax} - 2 * int64_t{sum});
  }
}

}  // namespace
}  // namespace litebnn
