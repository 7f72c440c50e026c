// Graphs of the custom ops, for tests.
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
  Options changed;  // options that differ from DefaultConvOptions
};

// The options of a convolution with SAME padding with +1, strides and dilations of 1, and no activation.
Options DefaultConvOptions(const ConvParams& params);

// Graphs of one op, whose input is the graph's input. The tensors of a convolution are 0 input, 1 filter, 2 multiplier,
// 3 bias, 4 threshold, 5 output. The tensors of the other ops are 0 input, 1 output.
Graph ConvGraph(const ConvParams& params, uint32_t seed = 1);
Graph QuantizeGraph(const std::vector<int>& shape, TfLiteType type);
Graph DequantizeGraph(const std::vector<int>& shape, TfLiteType type);
// Adds the graph's input, tensor 0, to the weights of a LitebnnUnpackWeights. Its inputs are the tensors 1 signs, 2
// scales and 3 zeros, and its output is tensor 4. The zeros may be left out.
Graph UnpackGraph(const std::vector<int>& shape, bool has_zeros, uint32_t seed = 1);
Graph PoolGraph(const std::vector<int>& packed_shape, const Options& options);
Options DefaultPoolOptions();

// A graph with all four custom ops in a chain, with `depth` packed convolutions.
Graph ChainGraph(int depth, int size = 9, int channels = 70);

// A graph of `depth` binary layers with shortcuts. Each layer packs the signs of its input, convolves them to float and
// adds its input. Every third layer adds the previous layer's input instead. With `doubles`, a builtin ADD doubles the
// shortcut first.
Graph ResidualGraph(int depth, int size = 5, int channels = 40, int activation = 0, bool doubles = false);

// A graph of a convolution, the sum of its output with itself, and two max pools in sequence. Both pools' outputs are
// outputs of the graph. The numbers of a pool are those of TfLitePoolParams: padding, stride width and height, filter
// width and height, activation.
Graph PooledGraph(const std::vector<int>& image, const std::vector<int>& first_pool,
                  const std::vector<int>& second_pool);

// A graph of two float32 images, each with a batch norm (MUL and ADD with constants per channel) before its signs are
// packed. The packed signs are concatenated and convolved. With `both_read`, the sum of the first batch norm is an
// output too.
Graph BatchNormGraph(int channels, int second_channels, bool both_read);

// The parameters of a graph with a CONCATENATION of an input and of several convolutions' outputs. The list `channels`
// has the channels of each convolution. A MUL, a MAX_POOL_2D with these options, and an ADD with this activation
// follow. Each of these three is optional.
struct JoinedParams {
  std::vector<int> image = {1, 6, 6};
  std::vector<int> channels = {40, 3};
  bool multiplies = true;
  std::vector<int> pool = {1, 2, 2, 2, 2, 0};  // empty for none
  int activation = 1;                          // -1 for no addition
};
Graph JoinedGraph(const JoinedParams& params);

// The parameters of a graph that multiplies a convolution's output by a gate, which is an input. An optional PRELU and
// an optional ADD of another input follow. LceQuantize reads the result, which is an output too.
struct GatedParams {
  std::vector<int> image = {1, 5, 6};
  int channels = 40;
  std::vector<int> gate = {1, 1, 1};  // leading dimensions of the gate's shape, before the channels
  bool gate_first = false, addend_first = false, leaks = true;
  int product_activation = 0, sum_activation = 0;  // -1 for no product or no sum
};
Graph GatedGraph(const GatedParams& params);

// The parameters of a graph with a CONV_2D of an int8 input, the packing of its signs, and a binary convolution to
// int8. An ADD sums the outputs of both convolutions, or the output of the binary convolution and another input. A pool
// follows.
struct Int8Params {
  std::vector<int> image = {1, 5, 6, 3};
  int channels = 40, filter = 3, stride = 1;
  bool same = true, has_bias = true, by_channel = true;
  std::vector<TfLiteQuantizationParams> grids = {{0.02f, -5}, {0.05f, 3}, {0.7f, -7}, {0.75f, 2}};
  std::vector<int> addend = {};  // the shape of another input before the channels; empty for the stem's image
  bool addend_first = false;
  bool reads_all = false;                   // the images between the ops are outputs too
  int activation = 0;                       // of all three
  std::vector<int> pool = {1, 1, 2, 2, 3};  // as in PooledGraph, without the activation
  bool takes_maximum = false;               // the pool is a MAX_POOL_2D, not an AVERAGE_POOL_2D
};
Graph Int8Graph(const Int8Params& params);

// The parameters of a graph that multiplies an int8 image by a constant per channel, adds a constant per channel, and
// packs the signs. The MUL or the ADD may be left out.
struct Int8NormParams {
  std::vector<int> image = {2, 3, 4, 40};
  bool multiplies = true, adds = true;
  // The quantizations (scales and zero points) of the image, multiplier, product, addend and sum.
  std::vector<TfLiteQuantizationParams> grids = {{0.05f, -3}, {0.02f, 4}, {0.1f, 7}, {0.03f, -9}, {0.12f, 5}};
  bool reads_all = false;  // the images between the ops are outputs too
  int slices = 1;          // batch norms of the image, of which a CONCATENATION joins the packed signs
};
Graph Int8NormGraph(const Int8NormParams& params);

// The parameters of a graph that multiplies a float image by a constant per channel and adds another one. The signs of
// the sum are packed, and an AVERAGE_POOL_2D reads the sum too. The MUL or the ADD may be left out.
struct AveragedNormParams {
  std::vector<int> image = {2, 3, 4, 40};
  bool multiplies = true, adds = true;
  std::vector<int> pool = {kTfLitePaddingValid, 4, 3, 4, 3};  // as in PooledGraph, without the activation
  bool averages_first = false;                                // AVERAGE_POOL_2D is before LceQuantize
  bool reads_all = false;                                     // the images between the ops are outputs too
};
Graph AveragedNormGraph(const AveragedNormParams& params);

// The source of a graph's random decisions: a random number generator, or a fuzzer's bytes.
using RandomBits = std::function<uint32_t()>;

// A random number from `low` to `high`, both included.
int Pick(const RandomBits& random, int low, int high);

// A small random graph of any of the kinds in this file.
Graph RandomGraph(const RandomBits& random);

// True if a runtime accepts the graph before it asks a delegate or prepares a node.
bool RuntimeAccepts(const Graph& graph);

}  // namespace litebnn::testing
