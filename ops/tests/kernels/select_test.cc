#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/kernels/bconv2d_reference.h"
#include "tests/kernels/isas.h"

namespace litebnn {
namespace {

TEST(FindIsa, NamesAreChecked) {
  EXPECT_EQ(FindIsa("no such ISA"), nullptr);
  for (const std::string& name : IsaNames()) EXPECT_EQ(name, IsaName(*FindIsa(name.c_str())));
}

// Small and large windows, deep and shallow ones: each ISA has some that another one is better at.
TEST(FindIsa, WhatIsForcedComputesEverything) {
  for (const std::string& name : IsaNames()) {
    for (int32_t filter : {1, 3}) {
      for (int32_t channels : {1, 64, 512, 70000}) {
        BconvCase c;
        c.channels_in = channels;
        c.channels_out = 3;
        c.filter_height = c.filter_width = filter;
        BconvData data;
        ASSERT_TRUE(MakeBconvData(c, &data));
        const auto conv = Bconv2d::Create(*FindIsa(name.c_str()), data.spec, data.filter.data());
        ASSERT_NE(conv, nullptr);
        EXPECT_EQ(name, IsaName(conv->isa())) << Describe(c);
      }
    }
  }
}

// Set by who emulates a CPU and knows which.
TEST(FindIsa, TheCpuDecides) {
  const char* expected = std::getenv("EXPECTED_ISA");
  if (expected == nullptr) GTEST_SKIP() << "EXPECTED_ISA is not set";
  EXPECT_STREQ(IsaName(*FindIsa(nullptr)), expected);
}

}  // namespace
}  // namespace litebnn
