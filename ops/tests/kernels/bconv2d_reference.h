// A direct implementation of the binary convolution in docs/ops.md. It shares no code with the kernels. A test compares
// its sums with products of +1, -1 and 0. The bits after a row's last channel must be 0, and several groups must have
// multiples of 32 channels each, as the ops require too.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernels.h"

namespace litebnn {

struct BconvCase {
  int32_t batch = 1, height = 5, width = 5;
  int32_t channels_in = 32, channels_out = 32, groups = 1;
  int32_t filter_height = 3, filter_width = 3;
  int32_t stride_height = 1, stride_width = 1, dilation_height = 1, dilation_width = 1;
  bool same = true, zero_padding = false;
  Activation activation = Activation::kNone;
  Bconv2dOutputType output_type = Bconv2dOutputType::kFloat32;
  bool with_multiplier = true, with_bias = true, with_addend = false, rectify_sum = false;
  int32_t gates = 0;  // number of gates, with an addend only: 1 for all images, or one per image
  uint32_t seed = 1;
};

std::string Describe(const BconvCase& c);

struct BconvData {
  Bconv2dSpec spec;
  Bconv2dGeometry geometry;
  std::vector<uint32_t> input, filter;
  std::vector<float> multiplier, bias, addend, gate, slope;
  std::vector<int32_t> threshold;
};

std::vector<uint32_t> RandomPacked(std::mt19937& random, int64_t rows, int32_t channels);

// The size of an output with SAME padding, and the padding before the input.
int32_t SameOutput(int32_t input, int32_t stride);
int32_t PadBefore(int32_t input, int32_t output, int32_t filter, int32_t stride, int32_t dilation);

// Fills `data` with a random filter and input. Returns false if the filter does not fit the input. Vectors of `data`
// hold the arrays to which the pointers in `data->spec` refer.
bool MakeBconvData(const BconvCase& c, BconvData* data);

size_t OutputBytes(const BconvCase& c, const Bconv2dGeometry& g);

std::vector<uint8_t> ReferenceBconv(const BconvCase& c, const BconvData& data);

}  // namespace litebnn
