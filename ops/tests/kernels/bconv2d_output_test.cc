// What becomes of sums: activations, addends, the three types of output, and who writes which.
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "tests/kernels/isas.h"
#include "tests/kernels/run_bconv2d.h"

namespace litebnn {
namespace {

class Bconv2dOutputTest : public IsaTest {};
LITEBNN_TEST_EVERY_ISA(Bconv2dOutputTest);

// Whole tiles of pixels and channels, and what is left beside them.
TEST_P(Bconv2dOutputTest, EveryActivationAndAddend) {
  for (const Activation activation : kActivations) {
    for (int32_t channels_out : {64, 70, 128}) {
      for (int addend = 0; addend < 3; ++addend) {
        BconvCase c;
        c.height = 1;
        c.width = 13;
        c.channels_out = channels_out;
        c.activation = activation;
        c.with_addend = addend > 0;
        c.rectify_sum = addend == 2;
        ExpectAsReference(isa(), c, 1);
      }
    }
  }
}

TEST_P(Bconv2dOutputTest, OutputDoesNotDependOnThreads) {
  for (const Bconv2dOutputType output_type : kOutputTypes) {
    for (int32_t groups : {1, 2}) {
      for (int32_t size : {1, 7, 14}) {
        BconvCase c;
        c.height = c.width = size;
        c.groups = groups;
        c.channels_in = 64 * groups;
        c.channels_out = 200 * groups;
        c.zero_padding = true;
        c.output_type = output_type;
        BconvData data;
        ASSERT_TRUE(MakeBconvData(c, &data));
        const std::vector<uint8_t> expected = RunBconv(isa(), c, data, 1);
        for (int threads : {2, 3, 5}) EXPECT_EQ(RunBconv(isa(), c, data, threads), expected) << Describe(c);
      }
    }
  }
}

TEST_P(Bconv2dOutputTest, Int8OutputSaturatesAndTakesNan) {
  BconvCase c;
  c.output_type = Bconv2dOutputType::kInt8;
  c.channels_out = 69;
  BconvData data;
  ASSERT_TRUE(MakeBconvData(c, &data));
  const float special[] = {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                           std::numeric_limits<float>::quiet_NaN()};
  for (size_t i = 0; i < data.bias.size(); ++i) data.bias[i] = special[i % 3];
  const std::vector<uint8_t> output = RunBconv(isa(), c, data, 1);
  // The number of channels is a multiple of three.
  for (size_t i = 0; i < output.size(); ++i) EXPECT_EQ(static_cast<int8_t>(output[i]), i % 3 == 0 ? 127 : -128);
}

TEST_P(Bconv2dOutputTest, RectifiedSumOfNanIsZero) {
  for (Activation activation : kActivations) {
    for (int32_t channels_out : {64, 69}) {
      BconvCase c;
      c.channels_out = channels_out;
      c.activation = activation;
      c.with_addend = c.rectify_sum = true;
      BconvData data;
      ASSERT_TRUE(MakeBconvData(c, &data));
      for (size_t i = 0; i < data.bias.size(); i += 3) data.bias[i] = std::numeric_limits<float>::quiet_NaN();
      EXPECT_TRUE(RunBconv(isa(), c, data, 1) == ReferenceBconv(c, data)) << Describe(c);
    }
  }
}

}  // namespace
}  // namespace litebnn
