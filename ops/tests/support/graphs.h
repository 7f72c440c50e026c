// Graphs of the custom ops for tests.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "tests/support/fake_runtime.h"
#include "tests/support/options.h"

namespace litebnn::testing {

struct ConvParams {
  int batch = 1, height = 5, width = 6, channels_in = 64, channels_out = 40, groups = 1;
  int filter_height = 3, filter_width = 3;
  TfLiteType output = kTfLiteFloat32;
  Options changed;  // options to set otherwise than DefaultConvOptions has them
};

// SAME padding with +1, strides and dilations of 1, no activation.
Options DefaultConvOptions(const ConvParams& params);

// One op, its input the graph's. The tensors of a convolution are 0 input, 1 filter, 2 multiplier, 3 bias,
// 4 threshold, 5 output; those of the others 0 input, 1 output.
Graph ConvGraph(const ConvParams& params, uint32_t seed = 1);
Graph QuantizeGraph(const std::vector<int>& shape, TfLiteType type);
Graph DequantizeGraph(const std::vector<int>& shape, TfLiteType type);
Graph PoolGraph(const std::vector<int>& packed_shape, const Options& options);
Options DefaultPoolOptions();

// All four ops in a row, `depth` packed convolutions among them, each output the next one's input.
Graph ChainGraph(int depth, int size = 9, int channels = 70);

// Binary layers with shortcuts around them: each of the `depth` layers packs the signs of its input, convolves them to
// float and adds its input, or in every third layer that of the layer before. With `doubles` that is doubled first, by
// an ADD that is the runtime's.
Graph ResidualGraph(int depth, int size = 5, int channels = 40, int activation = 0, bool doubles = false);

// A convolution, the sum of its output with itself, and two max pools of the sum, one of the other; both are outputs.
// A pool is TfLitePoolParams: padding, stride width and height, filter width and height, activation.
Graph PooledGraph(const std::vector<int>& image, const std::vector<int>& first_pool,
                  const std::vector<int>& second_pool);

// Two float32 images whose channels get a batch norm, MUL and ADD with a constant for each, before their signs are
// packed and put beside each other for a convolution. With `both_read`, the sum of the first batch norm is an output
// too.
Graph BatchNormGraph(int channels, int second_channels, bool both_read);

// The outputs of a convolution for each number of channels, and an input, put side by side by a CONCATENATION, with
// what there is of the others behind it: a MUL, a MAX_POOL_2D with these options, and an ADD with this activation.
struct JoinedParams {
  std::vector<int> image = {1, 6, 6};
  std::vector<int> channels = {40, 3};
  bool multiplies = true;
  std::vector<int> pool = {1, 2, 2, 2, 2, 0};  // empty where there is none
  int activation = 1;                          // -1 where nothing is added
};
Graph JoinedGraph(const JoinedParams& params);

// A convolution's output times a gate, which is an input, with what there is of the others behind it: a PRELU, and an
// ADD of another input. LceQuantize reads that, which is an output beside the signs.
struct GatedParams {
  std::vector<int> image = {1, 5, 6};
  int channels = 40;
  std::vector<int> gate = {1, 1, 1};  // what its shape has in front of the channels
  bool gate_first = false, addend_first = false, leaks = true;
  int product_activation = 0, sum_activation = 0;  // -1 where nothing is multiplied, or added
};
Graph GatedGraph(const GatedParams& params);

// What decides: a random number generator, or a fuzzer's bytes.
using RandomBits = std::function<uint32_t()>;

// A number from `low` to `high`.
int Pick(const RandomBits& random, int low, int high);

// A small random graph of any of the kinds above.
Graph RandomGraph(const RandomBits& random);

// Whether the graph is one that a runtime accepts before it asks a delegate or prepares a node.
bool RuntimeAccepts(const Graph& graph);

}  // namespace litebnn::testing
