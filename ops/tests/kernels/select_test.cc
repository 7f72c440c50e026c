#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "kernels/isa/isa.h"
#include "kernels/platform/x86_cpu.h"
#include "tests/kernels/bconv2d_reference.h"
#include "tests/kernels/isas.h"

namespace litebnn {
namespace {

TEST(FindIsa, NamesAreChecked) {
  EXPECT_EQ(FindIsa("no such ISA"), nullptr);
  for (const std::string& name : IsaNames()) EXPECT_EQ(name, IsaName(*FindIsa(name.c_str())));
}

// This test covers small and large windows with few and many channels. By default, each ISA delegates some of these
// layers to another ISA. An ISA that is selected by name computes all of them.
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

#if LITEBNN_X86
// The spec of a square filter without dilation or groups.
Bconv2dSpec SquareFilter(int32_t size, int32_t stride, int32_t channels_in, int32_t channels_out) {
  Bconv2dSpec spec = {};
  spec.channels_in = channels_in;
  spec.channels_out = channels_out;
  spec.groups = spec.dilation_height_factor = spec.dilation_width_factor = 1;
  spec.filter_height = spec.filter_width = size;
  spec.stride_height = spec.stride_width = stride;
  return spec;
}

TEST(Cpu, CountsBitsFastFromZen5On) {
  EXPECT_FALSE(CountsBitsFast("GenuineIntel", 0x000806F8));  // Sapphire Rapids
  EXPECT_FALSE(CountsBitsFast("AuthenticAMD", 0x00A10F11));  // Zen 4
  EXPECT_TRUE(CountsBitsFast("AuthenticAMD", 0x00B00F21));   // Zen 5
}

TEST(Avx512Vbmi, TablesThatFewLookUpInAreLeftToCounting) {
  if (!kAvx512VbmiIsa.available()) GTEST_SKIP() << "this CPU has no VBMI";
  const bool counts_fast = CpuCountsBitsFast();
  const auto expect = [counts_fast](bool looks_up, bool looks_up_though, const Bconv2dSpec& spec) {
    EXPECT_EQ(kAvx512VbmiIsa.better(spec) == nullptr, counts_fast ? looks_up_though : looks_up)
        << spec.filter_width << ", " << spec.channels_in << " to " << spec.channels_out;
  };
  // If the CPU counts bits nearly as fast as it looks up tables, tables pay off only if many output channels share
  // them.
  expect(true, false, SquareFilter(3, 1, 64, 64));
  expect(true, false, SquareFilter(3, 1, 192, 192));
  expect(true, true, SquareFilter(3, 1, 256, 256));
  expect(true, true, SquareFilter(3, 1, 512, 512));
  expect(false, false, SquareFilter(1, 1, 512, 512));
  // Adjacent windows with many chunks share tables only if there are many output channels, because then the tables stay
  // in the L1 cache.
  expect(false, false, SquareFilter(3, 1, 320, 64));
  expect(true, true, SquareFilter(3, 1, 320, 256));
  // A larger image does not make lookups faster: tables are made of the input, so only more output channels let more
  // lookups share a table.
  Bconv2dSpec large = SquareFilter(3, 1, 320, 64);
  large.output_pixels = 56 * 56;
  expect(false, false, large);
  // Windows that have no rows in common need separate lookup tables for each row.
  expect(false, false, SquareFilter(3, 2, 128, 256));
  expect(true, false, SquareFilter(3, 2, 256, 512));
  // For a window that is computed in pieces, each tap needs its own lookup tables.
  expect(false, false, SquareFilter(5, 1, 512, 384));
  expect(true, true, SquareFilter(5, 1, 256, 384));
  // If one window covers the whole image, no other window can share its lookup tables.
  Bconv2dSpec whole = SquareFilter(6, 1, 256, 4096);
  expect(true, true, whole);
  whole.output_pixels = 1;
  expect(false, false, whole);
}
#endif

// Tests that emulate a known CPU set this environment variable to the ISA that the library must choose for the CPU.
TEST(FindIsa, TheCpuDecides) {
  const char* expected = std::getenv("EXPECTED_ISA");
  if (expected == nullptr) GTEST_SKIP() << "EXPECTED_ISA is not set";
  EXPECT_STREQ(IsaName(*FindIsa(nullptr)), expected);
  EXPECT_EQ(IsaNames().front(), expected);
}

}  // namespace
}  // namespace litebnn
