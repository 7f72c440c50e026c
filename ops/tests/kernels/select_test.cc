#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/kernels/isas.h"

namespace litebnn {
namespace {

TEST(FindIsa, NamesAreChecked) {
  EXPECT_EQ(FindIsa("no such ISA"), nullptr);
  for (const std::string& name : IsaNames()) EXPECT_EQ(name, IsaName(*FindIsa(name.c_str())));
}

// Set by who emulates a CPU and knows which.
TEST(FindIsa, TheCpuDecides) {
  const char* expected = std::getenv("EXPECTED_ISA");
  if (expected == nullptr) GTEST_SKIP() << "EXPECTED_ISA is not set";
  EXPECT_STREQ(IsaName(*FindIsa(nullptr)), expected);
}

}  // namespace
}  // namespace litebnn
