// Tests of the conversion of a convolution's sums to outputs: activations, epilogues, and the three output types.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/bconv2d/packed_filter.h"
#include "tests/kernels/isas.h"
#include "tests/kernels/run_bconv2d.h"

namespace litebnn {
namespace {

class Bconv2dOutputTest : public IsaTest {};
LITEBNN_TEST_EVERY_ISA(Bconv2dOutputTest);

// This test covers whole and partial tiles of pixels and channels.
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

// This test covers windows of one tap. ISAs compute such windows without tiles if the windows have few words. The
// images have more pixels than a block, the pixels that an ISA computes before it goes on to the next ones.
TEST_P(Bconv2dOutputTest, EveryActivationAndAddendOfOneTap) {
  for (const Activation activation : kActivations) {
    for (int32_t channels_in : {32, 63, 64, 96, 128, 256}) {
      for (int addend = 0; addend < 3; ++addend) {
        BconvCase c;
        c.height = c.width = 17;
        c.filter_height = c.filter_width = 1;
        c.stride_height = c.stride_width = addend == 2 ? 2 : 1;
        c.groups = channels_in == 128 ? 2 : 1;
        c.channels_in = channels_in * c.groups;
        c.channels_out = 134 * c.groups;
        c.activation = activation;
        c.with_addend = addend > 0;
        c.rectify_sum = addend == 2;
        ExpectAsReference(isa(), c, addend + 1);
      }
    }
  }
}

// This test covers gates, which are factors for the output channels, with padding and with groups. It covers one gate
// for each image, and one for all images.
TEST_P(Bconv2dOutputTest, GatesWithEveryActivation) {
  for (const Activation activation : kActivations) {
    for (const bool zero_padding : {false, true}) {
      for (const int32_t channels_out : {64, 128, 192, 320}) {
        BconvCase c;
        c.batch = 3;
        c.height = 3;
        c.width = 7;
        c.groups = channels_out == 128 ? 2 : 1;
        c.channels_in = 64 * c.groups;
        c.channels_out = channels_out;
        c.zero_padding = zero_padding;
        c.activation = activation;
        c.with_addend = true;
        c.gates = channels_out == 192 ? 1 : c.batch;
        ExpectAsReference(isa(), c, channels_out == 64 ? 2 : 1);
      }
    }
  }
}

// This test covers gates, which are factors for the output channels, in layers with windows of many words. It also
// covers windows of one or two words, for which ISAs have separate code.
TEST_P(Bconv2dOutputTest, GatesOfLongFiltersAndPointwiseOnes) {
  for (const int32_t channels_in : {7330, 64, 32}) {
    BconvCase c;
    const bool is_long = channels_in == 7330;
    c.batch = 2;
    c.height = is_long ? 2 : 5;
    c.width = is_long ? 3 : 13;
    c.channels_in = channels_in;
    c.channels_out = 64;
    c.filter_height = c.filter_width = is_long ? 3 : 1;
    c.with_addend = true;
    c.gates = 2;
    ExpectAsReference(isa(), c, 1);
  }
}

// A fused gate must give the same bits as a separate gate pass, also for special numbers. NaN and -0 are not below 0,
// and the sum of opposite infinities is NaN.
TEST_P(Bconv2dOutputTest, GatesOfNumbersOfAllKinds) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float special[] = {0.0f, -0.0f, kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN(), 3.0f, -5.0f};
  for (const bool zero_padding : {false, true}) {
    BconvCase c;
    c.height = c.width = 9;
    c.channels_in = 64;
    c.channels_out = 128;
    c.zero_padding = zero_padding;
    c.with_addend = true;
    c.gates = 1;
    BconvData data;
    ASSERT_TRUE(MakeBconvData(c, &data));
    for (size_t i = 0; i < data.gate.size(); ++i) {
      data.gate[i] = special[i % 7];
      data.slope[i] = special[i / 7 % 7];
      data.bias[i] = i % 3 == 0 ? special[i % 5] : data.bias[i];
    }
    for (size_t i = 0; i < data.addend.size(); ++i) data.addend[i] = special[i % 4];
    std::vector<uint8_t> found = RunBconv(isa(), c, data, 1), expected = ReferenceBconv(c, data);
    for (std::vector<uint8_t>* bytes : {&found, &expected}) {
      auto* const values = reinterpret_cast<float*>(bytes->data());
      // Replaces every NaN by the same NaN, because the bits of a NaN may differ between ISAs.
      for (size_t i = 0; i < bytes->size() / sizeof(float); ++i) values[i] = std::isnan(values[i]) ? NAN : values[i];
    }
    EXPECT_TRUE(found == expected) << Describe(c);
  }
}

TEST_P(Bconv2dOutputTest, GatesWholeTiles) {
  for (const int32_t channels_out : {32, 64, 96, 128}) {
    for (const int32_t groups : {1, 2}) {
      BconvCase c;
      c.groups = groups;
      c.channels_in = 64 * groups;
      c.channels_out = channels_out;
      BconvData data;
      ASSERT_TRUE(MakeBconvData(c, &data));
      const auto conv = Bconv2d::Create(isa(), data.spec, data.filter.data());
      const bool is_sme2 = IsaName(conv->isa()) == std::string("sme2");
      ASSERT_TRUE(conv->Resize(data.geometry));
      EXPECT_EQ(conv->gates(), channels_out / groups % 64 == 0 && !is_sme2) << Describe(c);
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
  // The number of channels is a multiple of three. The index of an output value modulo 3 is therefore equal to its
  // channel modulo 3.
  for (size_t i = 0; i < output.size(); ++i) EXPECT_EQ(static_cast<int8_t>(output[i]), i % 3 == 0 ? 127 : -128);
}

// If a value lies halfway between two int8 outputs, it is rounded away from zero. Layers in which no value does have
// faster code.
TEST_P(Bconv2dOutputTest, Int8OutputsWithAndWithoutTies) {
  for (const bool ties : {false, true}) {
    for (const Activation activation : kActivations) {
      for (const int32_t channels_out : {32, 64, 70, 128}) {
        BconvCase c;
        c.height = c.width = 9;
        c.channels_out = channels_out;
        c.activation = activation;
        c.zero_padding = channels_out == 128;
        c.output_type = Bconv2dOutputType::kInt8;
        BconvData data;
        ASSERT_TRUE(MakeBconvData(c, &data));
        data.spec.output_scale = 1.0f;
        for (size_t i = 0; i < data.bias.size(); ++i) {
          data.multiplier[i] = ties ? (i % 3 == 0 ? -0.5f : 0.25f) : (i % 3 == 0 ? -2.0f : 1.0f);
          data.bias[i] = ties ? static_cast<float>(i % 7) * 0.5f : static_cast<float>(i % 7) + 0.3f;
          const int32_t depth = c.filter_height * c.filter_width * c.channels_in;
          ASSERT_TRUE(ties || !MayTie(data.multiplier[i], data.bias[i], depth, data.spec.output_zero_point));
        }
        EXPECT_EQ(RunBconv(isa(), c, data, 1), ReferenceBconv(c, data)) << Describe(c);
      }
    }
  }
}

// An int8 addition in a convolution's epilogue must give the same as adding the addend to the output of a separate
// convolution. Half of the scales are simple fractions, with which some sums lie halfway between two int8 values.
TEST_P(Bconv2dOutputTest, Int8SumsEqualFixedPointSums) {
  std::mt19937 random(1);
  const auto pick = [&random](int32_t low, int32_t high) { return std::uniform_int_distribution(low, high)(random); };
  const auto scale = [&] { return static_cast<float>(pick(0, 1) == 0 ? 64 * pick(1, 48) : pick(64, 3072)) / 1024; };
  int32_t sums = 0, excepted = 0;
  for (int32_t i = 0; i < 60; ++i) {
    BconvCase c;
    c.height = 5;
    c.width = pick(1, 13);
    c.channels_in = pick(1, 3) * 32;
    c.groups = c.channels_in == 64 ? pick(1, 2) : 1;
    // Some tiles are partial.
    c.channels_out = pick(0, 2) == 0 ? 6 + 22 * pick(2, 5) : pick(1, 4) * 32;
    c.zero_padding = pick(0, 3) == 0;
    c.activation = pick(0, 1) == 0 ? Activation::kNone : Activation::kRelu;
    c.output_type = Bconv2dOutputType::kInt8;
    BconvData data;
    ASSERT_TRUE(MakeBconvData(c, &data));
    const auto conv = Bconv2d::Create(isa(), data.spec, data.filter.data());
    ASSERT_TRUE(conv->Resize(data.geometry));
    Int8Sum sum;
    FloatSum floats;
    const Int8Grid second = {scale(), pick(-128, 127)}, total = {scale(), pick(-128, 127)};
    const int32_t least = pick(0, 1) == 0 ? -128 : total.zero_point, most = pick(0, 1) == 0 ? 127 : pick(least, 127);
    if (!sum.Set({{0.75f, data.spec.output_zero_point}, second, total, least, most}) || !sum.FindFloatSum(&floats)) {
      continue;
    }
    ++sums;
    excepted += floats.exceptions > 0 ? 1 : 0;
    if (!conv->adds_int8()) continue;
    const std::vector<uint8_t> first = RunBconv(isa(), c, data, 1);
    std::vector<int8_t> addend(first.size());
    for (int8_t& level : addend) level = static_cast<int8_t>(pick(-128, 127));
    GuardedBuffer input(data.input), added(addend), workspace(conv->WorkspaceBytes(1)), output(first.size());
    Bconv2dEpilogue epilogue;
    epilogue.int8_addend = added.As<int8_t>();
    epilogue.int8_sum = floats;
    conv->Run(*ThreadPool::Create(1), input.As<uint32_t>(), epilogue, output.data(), workspace.data());
    for (size_t k = 0; k < first.size(); ++k) {
      ASSERT_EQ(output.As<int8_t>()[k], sum(static_cast<int8_t>(first[k]), addend[k]))
          << Describe(c) << ", value " << k;
    }
  }
  EXPECT_GT(sums, 20);
  EXPECT_GT(excepted, 0);
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
