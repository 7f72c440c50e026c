#include "tests/support/graphs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>

#include "tflite/ops/contract.h"

namespace litebnn::testing {
namespace {

constexpr TfLiteQuantizationParams kQuantization = {0.5f, 3};

int Words(int channels) { return (channels + 31) / 32; }

std::vector<int> Packed(std::vector<int> shape) {
  shape.back() = Words(shape.back());
  return shape;
}

template <typename T>
std::vector<uint8_t> Bytes(const std::vector<T>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

int Add(Graph* graph, TfLiteType type, std::vector<int> shape, std::vector<uint8_t> constant = {}) {
  GraphTensor tensor;
  tensor.type = type;
  tensor.shape = std::move(shape);
  tensor.constant = std::move(constant);
  if (type == kTfLiteInt8) tensor.quantization = kQuantization;
  graph->tensors.push_back(std::move(tensor));
  return static_cast<int>(graph->tensors.size()) - 1;
}

int AddInt8(Graph* graph, const std::vector<int>& shape, const TfLiteQuantizationParams& grid,
            std::vector<uint8_t> constant = {}) {
  const int tensor = Add(graph, kTfLiteInt8, shape, std::move(constant));
  graph->tensors.back().quantization = grid;
  graph->tensors.back().grids = {{grid.scale}, {grid.zero_point}, 0};
  return tensor;
}

// Adds a constant tensor with one value per channel.
int AddChannelValues(Graph* graph, int channels, std::mt19937& random) {
  std::vector<float> values(static_cast<size_t>(channels));
  for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 100.0f;
  return Add(graph, kTfLiteFloat32, {channels}, Bytes(values));
}

int OutputSize(int input, int filter, int stride, int dilation, int padding) {
  const int reach = (filter - 1) * dilation + 1;
  return padding == contract::kPaddingSame ? (input + stride - 1) / stride : (input - reach) / stride + 1;
}

int AddConv(Graph* graph, const ConvParams& params, int input, uint32_t seed) {
  std::mt19937 random(seed);
  const int group_channels = params.channels_in / params.groups;
  const int words = Words(group_channels);
  std::vector<uint32_t> filter;
  for (int tap = 0; tap < params.channels_out * params.filter_height * params.filter_width; ++tap) {
    for (int word = 0; word < words; ++word) {
      const int bits = std::min(32, group_channels - 32 * word);
      filter.push_back(static_cast<uint32_t>(random()) >> (32 - bits));
    }
  }
  const auto channels = static_cast<size_t>(params.channels_out);
  std::vector<float> multiplier(channels), bias(channels);
  std::vector<int32_t> threshold(channels);
  for (size_t i = 0; i < channels; ++i) {
    multiplier[i] = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 1000.0f;
    bias[i] = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 100.0f;
    threshold[i] = static_cast<int32_t>(random() % 600);
  }
  const Options options = DefaultConvOptions(params);
  const int padding = static_cast<int>(options.at(contract::kPadding));
  const int height =
      OutputSize(params.height, params.filter_height, static_cast<int>(options.at(contract::kStrideHeight)),
                 static_cast<int>(options.at(contract::kDilationHeightFactor)), padding);
  const int width = OutputSize(params.width, params.filter_width, static_cast<int>(options.at(contract::kStrideWidth)),
                               static_cast<int>(options.at(contract::kDilationWidthFactor)), padding);
  const bool packed = params.output == kTfLiteInt32;

  GraphNode node;
  node.op = contract::kBconv2d;
  node.inputs = {
      input,
      Add(graph, kTfLiteInt32, {params.channels_out, params.filter_height, params.filter_width, words}, Bytes(filter)),
      Add(graph, kTfLiteFloat32, {params.channels_out}, Bytes(multiplier)),
      Add(graph, kTfLiteFloat32, {params.channels_out}, Bytes(bias)),
      Add(graph, kTfLiteInt32, {params.channels_out}, Bytes(threshold))};
  node.outputs = {Add(graph, params.output,
                      {params.batch, height, width, packed ? Words(params.channels_out) : params.channels_out})};
  node.options = EncodeOptions(options);
  graph->nodes.push_back(node);
  return node.outputs[0];
}

int AddSimple(Graph* graph, const char* op, int input, TfLiteType type, std::vector<int> shape,
              std::vector<uint8_t> options = {}) {
  const int output = Add(graph, type, std::move(shape));
  graph->nodes.push_back({op, {input}, {output}, std::move(options), {}});
  return output;
}

// Appends the op ADD, which adds a new input of the graph to the graph's output.
void AddInput(Graph* graph, int activation) {
  const int output = graph->outputs[0];
  const std::vector<int> shape = graph->tensors[static_cast<size_t>(output)].shape;
  const int addend = Add(graph, kTfLiteFloat32, shape), sum = Add(graph, kTfLiteFloat32, shape);
  graph->inputs.push_back(addend);
  graph->nodes.push_back({"ADD", {output, addend}, {sum}, {}, {activation}});
  graph->outputs = {sum};
}

// A graph of one convolution of random type, padding and size. A few graphs have filters so long that they are computed
// in pieces. Some have so many channels and pixels that some ISAs compute one pixel per lane.
Graph RandomConvGraph(const RandomBits& random) {
  const auto pick = [&random](int low, int high) { return Pick(random, low, high); };
  ConvParams params;
  params.batch = pick(1, 2);
  params.groups = pick(0, 3) == 0 ? pick(2, 3) : 1;
  const int rare = params.groups == 1 ? pick(0, 15) : 2;
  const bool is_long = rare == 0, is_deep = rare == 1;
  const int least = is_deep ? 19 : 0;
  params.height = is_long ? 1 : least + pick(1, 7);
  params.width = least + pick(1, 7);
  params.channels_in = params.groups > 1 ? params.groups * 32 * pick(1, 2)
                       : is_long         ? pick(26300, 30000)
                       : is_deep         ? pick(161, 192)
                                         : pick(1, 100);
  // Half of the layers have a multiple of 16 output channels, because ISAs have other code for whole vectors of
  // channels.
  params.channels_out = params.groups * (is_long || pick(0, 1) == 0 ? pick(1, 40) : 16 * pick(1, 16));
  if (is_deep) params.batch = 1, params.channels_out = 64;
  params.filter_height = is_long ? 1 : is_deep ? 3 : pick(1, 3);
  params.filter_width = is_long ? 1 : is_deep ? 3 : pick(1, 3);
  const TfLiteType outputs[] = {kTfLiteFloat32, kTfLiteInt8, kTfLiteInt32};
  params.output = outputs[pick(0, 2)];
  const int pad_values = pick(0, 1);
  // A convolution with packed output and zero padding requires an even number of input channels.
  if (params.output == kTfLiteInt32 && pad_values == contract::kPadValuesZero)
    params.channels_in += params.channels_in % 2;
  const bool valid = params.filter_height <= params.height && params.filter_width <= params.width && pick(0, 1);
  params.changed = {{contract::kPadding, valid ? contract::kPaddingValid : contract::kPaddingSame},
                    {contract::kPadValues, pad_values},
                    {contract::kFusedActivationFunction, pick(0, 3)},
                    {contract::kStrideHeight, is_deep ? 1 : pick(1, 3)},
                    {contract::kStrideWidth, is_deep ? 1 : pick(1, 3)},
                    {contract::kDilationHeightFactor, valid ? 1 : pick(1, 2)},
                    {contract::kDilationWidthFactor, valid ? 1 : pick(1, 2)}};
  Graph graph = ConvGraph(params, random());
  if (params.output == kTfLiteFloat32 && pick(0, 2) == 0) {
    AddInput(&graph, pick(0, 1));
  } else if (pick(0, 2) == 0) {
    Options options = DefaultConvOptions(params);
    options.erase(contract::kPadding);
    // The padding is large enough that the largest filter fits the smallest image.
    for (const char* side : {contract::kPadTop, contract::kPadLeft}) options[side] = pick(0, 3);
    for (const char* side : {contract::kPadBottom, contract::kPadRight}) options[side] = 4;
    graph.nodes[0].options = EncodeOptions(options);
  }
  // An LceBconv2d need not have a multiplier and a bias. It needs a threshold only if its output is packed.
  for (size_t input = 2; input < 5; ++input) {
    if (pick(0, 7) == 0 && (input < 4 || params.output != kTfLiteInt32)) graph.nodes[0].inputs[input] = kOptionalTensor;
  }
  return graph;
}

}  // namespace

Options DefaultConvOptions(const ConvParams& params) {
  Options options = {{contract::kChannelsIn, params.channels_in},
                     {contract::kDilationHeightFactor, 1},
                     {contract::kDilationWidthFactor, 1},
                     {contract::kFusedActivationFunction, contract::kActivationNone},
                     {contract::kPadValues, contract::kPadValuesOne},
                     {contract::kPadding, contract::kPaddingSame},
                     {contract::kStrideHeight, 1},
                     {contract::kStrideWidth, 1}};
  for (const auto& [key, value] : params.changed) options[key] = value;
  return options;
}

Options DefaultPoolOptions() {
  return {{contract::kPadding, contract::kPaddingSame},
          {contract::kStrideWidth, 2},
          {contract::kStrideHeight, 2},
          {contract::kFilterWidth, 3},
          {contract::kFilterHeight, 3}};
}

Graph ConvGraph(const ConvParams& params, uint32_t seed) {
  Graph graph;
  graph.inputs = {Add(&graph, kTfLiteInt32, Packed({params.batch, params.height, params.width, params.channels_in}))};
  graph.outputs = {AddConv(&graph, params, graph.inputs[0], seed)};
  return graph;
}

Graph QuantizeGraph(const std::vector<int>& shape, TfLiteType type) {
  Graph graph;
  graph.inputs = {Add(&graph, type, shape)};
  graph.outputs = {AddSimple(&graph, contract::kQuantize, graph.inputs[0], kTfLiteInt32, Packed(shape))};
  return graph;
}

Graph DequantizeGraph(const std::vector<int>& shape, TfLiteType type) {
  Graph graph;
  graph.inputs = {Add(&graph, kTfLiteInt32, Packed(shape))};
  graph.outputs = {AddSimple(&graph, contract::kDequantize, graph.inputs[0], type, shape)};
  return graph;
}

Graph UnpackGraph(const std::vector<int>& shape, bool has_zeros, uint32_t seed) {
  std::mt19937 random(seed);
  Graph graph;
  graph.inputs = {Add(&graph, kTfLiteFloat32, shape)};
  const int rows = shape[0];
  const int values = std::accumulate(shape.begin() + 1, shape.end(), 1, std::multiplies<int>());
  const auto add_bits = [&] {
    std::vector<uint32_t> words(static_cast<size_t>(rows * Words(values)));
    for (uint32_t& word : words) word = static_cast<uint32_t>(random());
    return Add(&graph, kTfLiteInt32, {rows, Words(values)}, Bytes(words));
  };
  const int signs = add_bits();
  const int scales = AddChannelValues(&graph, rows == 1 ? shape.back() : rows, random);
  const int zeros = add_bits();
  const int weights = Add(&graph, kTfLiteFloat32, shape), sum = Add(&graph, kTfLiteFloat32, shape);
  graph.nodes.push_back({contract::kUnpackWeights, {signs, scales}, {weights}, {}, {}});
  if (has_zeros) graph.nodes[0].inputs.push_back(zeros);
  graph.nodes.push_back({"ADD", {graph.inputs[0], weights}, {sum}, {}, {kTfLiteActNone}});
  graph.outputs = {sum};
  return graph;
}

Graph PoolGraph(const std::vector<int>& packed_shape, const Options& options) {
  Graph graph;
  graph.inputs = {Add(&graph, kTfLiteInt32, packed_shape)};
  graph.outputs = {
      AddSimple(&graph, contract::kBMaxPool2d, graph.inputs[0], kTfLiteInt32, packed_shape, EncodeOptions(options))};
  return graph;
}

Graph ChainGraph(int depth, int size, int channels) {
  Graph graph;
  const std::vector<int> shape = {1, size, size, channels};
  graph.inputs = {Add(&graph, kTfLiteFloat32, shape)};
  int tensor = AddSimple(&graph, contract::kQuantize, graph.inputs[0], kTfLiteInt32, Packed(shape));
  ConvParams params;
  params.height = params.width = size;
  params.channels_in = params.channels_out = channels;
  params.output = kTfLiteInt32;
  for (int i = 0; i < depth; ++i) tensor = AddConv(&graph, params, tensor, static_cast<uint32_t>(i + 1));
  const int half = (size + 1) / 2;
  tensor = AddSimple(&graph, contract::kBMaxPool2d, tensor, kTfLiteInt32, {1, half, half, Words(channels)},
                     EncodeOptions(DefaultPoolOptions()));
  params.height = params.width = half;
  params.output = kTfLiteInt8;
  tensor = AddConv(&graph, params, tensor, 99);
  tensor = AddSimple(&graph, contract::kQuantize, tensor, kTfLiteInt32, {1, half, half, Words(channels)});
  graph.outputs = {AddSimple(&graph, contract::kDequantize, tensor, kTfLiteFloat32, {1, half, half, channels})};
  return graph;
}

Graph ResidualGraph(int depth, int size, int channels, int activation, bool doubles) {
  Graph graph;
  const std::vector<int> shape = {1, size, size, channels};
  graph.inputs = {Add(&graph, kTfLiteFloat32, shape)};
  ConvParams params;
  params.height = params.width = size;
  params.channels_in = params.channels_out = channels;
  int tensor = graph.inputs[0], tensor_before = tensor;
  for (int i = 0; i < depth; ++i) {
    const int packed = AddSimple(&graph, contract::kQuantize, tensor, kTfLiteInt32, Packed(shape));
    const int convolved = AddConv(&graph, params, packed, static_cast<uint32_t>(i + 1));
    const int sum = Add(&graph, kTfLiteFloat32, shape);
    // The ADD of every other layer has the convolution's output as its first addend, the others have it as their
    // second.
    int shortcut = i % 3 == 2 ? tensor_before : tensor;
    if (doubles) {
      const int doubled = Add(&graph, kTfLiteFloat32, shape);
      graph.nodes.push_back({"ADD", {shortcut, shortcut}, {doubled}, {}, {0}});
      shortcut = doubled;
    }
    const std::vector<int> addends =
        i % 2 == 0 ? std::vector<int>{convolved, shortcut} : std::vector<int>{shortcut, convolved};
    graph.nodes.push_back({"ADD", addends, {sum}, {}, {activation}});
    tensor_before = tensor;
    tensor = sum;
  }
  graph.outputs = {tensor};
  return graph;
}

Graph JoinedGraph(const JoinedParams& params) {
  Graph graph;
  const auto shape = [&params](int channels) {
    return std::vector<int>{params.image[0], params.image[1], params.image[2], channels};
  };
  ConvParams conv;
  conv.batch = params.image[0];
  conv.height = params.image[1];
  conv.width = params.image[2];
  graph.inputs = {Add(&graph, kTfLiteFloat32, shape(5)), Add(&graph, kTfLiteInt32, Packed(shape(conv.channels_in)))};
  std::vector<int> slices = {graph.inputs[0]};
  int channels = 5;
  for (int count : params.channels) {
    conv.channels_out = count;
    slices.push_back(AddConv(&graph, conv, graph.inputs[1], static_cast<uint32_t>(slices.size())));
    channels += count;
  }
  std::mt19937 random(static_cast<uint32_t>(channels));
  int tensor = Add(&graph, kTfLiteFloat32, shape(channels));
  graph.nodes.push_back({"CONCATENATION", slices, {tensor}, {}, {3, 0}});
  const auto append = [&](const char* op, const std::vector<int>& builtin, bool has_constants) {
    std::vector<int> inputs = {tensor};
    if (has_constants) inputs.push_back(AddChannelValues(&graph, channels, random));
    // The shape of this op's output is only a placeholder; the runtime computes the real shape.
    tensor = Add(&graph, kTfLiteFloat32, shape(channels));
    graph.nodes.push_back({op, inputs, {tensor}, {}, builtin});
  };
  if (params.multiplies) append("MUL", {0}, true);
  if (!params.pool.empty()) append("MAX_POOL_2D", params.pool, false);
  if (params.activation >= 0) append("ADD", {params.activation}, true);
  graph.outputs = {tensor};
  return graph;
}

Graph GatedGraph(const GatedParams& params) {
  Graph graph;
  const std::vector<int> shape = {params.image[0], params.image[1], params.image[2], params.channels};
  ConvParams conv;
  conv.batch = shape[0];
  conv.height = shape[1];
  conv.width = shape[2];
  conv.channels_out = params.channels;
  graph.inputs = {Add(&graph, kTfLiteInt32, Packed({shape[0], shape[1], shape[2], conv.channels_in}))};
  std::mt19937 random(static_cast<uint32_t>(params.channels));
  int tensor = AddConv(&graph, conv, graph.inputs[0], 1);
  const auto append = [&](const char* op, int other, bool other_first, const std::vector<int>& builtin) {
    const std::vector<int> inputs = other_first ? std::vector<int>{other, tensor} : std::vector<int>{tensor, other};
    tensor = Add(&graph, kTfLiteFloat32, shape);
    graph.nodes.push_back({op, inputs, {tensor}, {}, builtin});
  };
  const auto add_input = [&graph](const std::vector<int>& input_shape) {
    graph.inputs.push_back(Add(&graph, kTfLiteFloat32, input_shape));
    return graph.inputs.back();
  };
  if (params.product_activation >= 0) {
    std::vector<int> gate = params.gate;
    gate.push_back(params.channels);
    append("MUL", add_input(gate), params.gate_first, {params.product_activation});
  }
  if (params.leaks) append("PRELU", AddChannelValues(&graph, params.channels, random), false, {});
  if (params.sum_activation >= 0) append("ADD", add_input(shape), params.addend_first, {params.sum_activation});
  graph.outputs = {tensor, AddSimple(&graph, contract::kQuantize, tensor, kTfLiteInt32, Packed(shape))};
  return graph;
}

Graph BatchNormGraph(int channels, int second_channels, bool both_read) {
  Graph graph;
  std::mt19937 random(static_cast<uint32_t>(channels));
  std::vector<int> packed;
  for (int count : {channels, second_channels}) {
    const std::vector<int> shape = {2, 3, 4, count};
    const int image = Add(&graph, kTfLiteFloat32, shape);
    graph.inputs.push_back(image);
    const int scaled = Add(&graph, kTfLiteFloat32, shape), shifted = Add(&graph, kTfLiteFloat32, shape);
    graph.nodes.push_back({"MUL", {image, AddChannelValues(&graph, count, random)}, {scaled}, {}, {0}});
    graph.nodes.push_back({"ADD", {scaled, AddChannelValues(&graph, count, random)}, {shifted}, {}, {0}});
    packed.push_back(AddSimple(&graph, contract::kQuantize, shifted, kTfLiteInt32, Packed(shape)));
    if (both_read && graph.outputs.empty()) graph.outputs.push_back(shifted);
  }
  const int words = Words(channels) + Words(second_channels);
  const int whole = Add(&graph, kTfLiteInt32, {2, 3, 4, words});
  graph.nodes.push_back({"CONCATENATION", packed, {whole}, {}, {3, 0}});
  ConvParams params;
  params.batch = 2;
  params.height = 3;
  params.width = 4;
  params.channels_in = 32 * words;
  graph.outputs.push_back(AddConv(&graph, params, whole, 1));
  return graph;
}

Graph PooledGraph(const std::vector<int>& image, const std::vector<int>& first_pool,
                  const std::vector<int>& second_pool) {
  Graph graph;
  ConvParams params;
  params.batch = image[0];
  params.height = image[1];
  params.width = image[2];
  params.channels_in = params.channels_out = image[3];
  graph.inputs = {Add(&graph, kTfLiteInt32, Packed(image))};
  const int convolved = AddConv(&graph, params, graph.inputs[0], 1);
  const int sum = Add(&graph, kTfLiteFloat32, image);
  graph.nodes.push_back({"ADD", {convolved, convolved}, {sum}, {}, {1}});
  // The graph declares placeholder shapes; the runtime computes the real ones.
  const int pooled = Add(&graph, kTfLiteFloat32, image), pooled_twice = Add(&graph, kTfLiteFloat32, image);
  graph.nodes.push_back({"MAX_POOL_2D", {sum}, {pooled}, {}, first_pool});
  graph.nodes.push_back({"MAX_POOL_2D", {pooled}, {pooled_twice}, {}, second_pool});
  graph.outputs = {pooled, pooled_twice};
  return graph;
}

Graph Int8Graph(const Int8Params& params) {
  Graph graph;
  const auto add_image = [&graph](const std::vector<int>& shape, const TfLiteQuantizationParams& grid) {
    return AddInt8(&graph, shape, grid);
  };
  std::mt19937 random(static_cast<uint32_t>(params.channels));
  const auto channels = static_cast<size_t>(params.channels);
  const int padding = params.same ? kTfLitePaddingSame : kTfLitePaddingValid;
  const int pool_padding = params.pool[0];
  const auto size = [](int input, int filter, int stride, int pads) {
    return OutputSize(input, filter, stride, 1,
                      pads == kTfLitePaddingSame ? contract::kPaddingSame : contract::kPaddingValid);
  };
  graph.inputs = {add_image(params.image, params.grids[0])};
  std::vector<int8_t> weights(channels * static_cast<size_t>(params.filter * params.filter * params.image[3]));
  for (int8_t& weight : weights) weight = static_cast<int8_t>(static_cast<int>(random() % 255) - 127);
  const int filter =
      Add(&graph, kTfLiteInt8, {params.channels, params.filter, params.filter, params.image[3]}, Bytes(weights));
  graph.tensors.back().grids.scales.assign(params.by_channel ? channels : 1, 0.01f);
  for (float& scale : graph.tensors.back().grids.scales) scale += static_cast<float>(random() % 100) / 10000.0f;
  graph.tensors.back().grids.zero_points.assign(params.by_channel ? channels : 1, 0);
  std::vector<int32_t> biases(channels);
  for (int32_t& bias : biases) bias = static_cast<int32_t>(random() % 2001) - 1000;
  const int bias = params.has_bias ? Add(&graph, kTfLiteInt32, {params.channels}, Bytes(biases)) : kOptionalTensor;

  ConvParams conv;
  conv.batch = params.image[0];
  conv.height = size(params.image[1], params.filter, params.stride, padding);
  conv.width = size(params.image[2], params.filter, params.stride, padding);
  conv.channels_in = conv.channels_out = params.channels;
  conv.output = kTfLiteInt8;
  const std::vector<int> shape = {conv.batch, conv.height, conv.width, params.channels};
  const int stem = add_image(shape, params.grids[1]);
  graph.nodes.push_back({"CONV_2D",
                         {graph.inputs[0], filter, bias},
                         {stem},
                         {},
                         {padding, params.stride, params.stride, params.activation, 1, 1}});
  const int packed = AddSimple(&graph, contract::kQuantize, stem, kTfLiteInt32, Packed(shape));
  const int convolved = AddConv(&graph, conv, packed, 1);
  graph.tensors[static_cast<size_t>(convolved)].quantization = params.grids[2];
  int addend = stem;
  if (!params.addend.empty()) {
    addend = add_image({params.addend[0], params.addend[1], params.addend[2], params.channels}, params.grids[1]);
    graph.inputs.push_back(addend);
  }
  const int sum = add_image(shape, params.grids[3]);
  const std::vector<int> operands =
      params.addend_first ? std::vector<int>{addend, convolved} : std::vector<int>{convolved, addend};
  graph.nodes.push_back({"ADD", operands, {sum}, {}, {params.activation}});
  std::vector<int> pool = params.pool;
  pool.push_back(params.activation);
  const int pooled = add_image({conv.batch, size(conv.height, pool[4], pool[2], pool_padding),
                                size(conv.width, pool[3], pool[1], pool_padding), params.channels},
                               params.grids[3]);
  graph.nodes.push_back({params.takes_maximum ? "MAX_POOL_2D" : "AVERAGE_POOL_2D", {sum}, {pooled}, {}, pool});
  graph.outputs = {pooled};
  if (params.reads_all) graph.outputs.insert(graph.outputs.end(), {stem, convolved, sum});
  return graph;
}

Graph Int8NormGraph(const Int8NormParams& params) {
  Graph graph;
  const int channels = params.image.back();
  std::mt19937 random(static_cast<uint32_t>(channels));
  const auto add_constant = [&](const TfLiteQuantizationParams& grid) {
    std::vector<uint8_t> levels(static_cast<size_t>(channels));
    for (uint8_t& level : levels) level = static_cast<uint8_t>(random());
    return AddInt8(&graph, {channels}, grid, levels);
  };
  graph.inputs = {AddInt8(&graph, params.image, params.grids[0])};
  int tensor = 0;
  const auto append = [&](const char* op, size_t grid) {
    const int constant = add_constant(params.grids[grid]), image = tensor;
    tensor = AddInt8(&graph, params.image, params.grids[grid + 1]);
    graph.nodes.push_back({op, {image, constant}, {tensor}, {}, {kTfLiteActNone}});
    if (params.reads_all) graph.outputs.push_back(tensor);
  };
  std::vector<int> packed;
  for (int slice = 0; slice < params.slices; ++slice) {
    tensor = graph.inputs[0];
    if (params.multiplies) append("MUL", 1);
    if (params.adds) append("ADD", 3);
    packed.push_back(AddSimple(&graph, contract::kQuantize, tensor, kTfLiteInt32, Packed(params.image)));
  }
  if (params.slices > 1) {
    std::vector<int> shape = Packed(params.image);
    shape.back() *= params.slices;
    const int whole = Add(&graph, kTfLiteInt32, shape);
    graph.nodes.push_back({"CONCATENATION", packed, {whole}, {}, {3, 0}});
    packed = {whole};
  }
  graph.outputs.push_back(packed[0]);
  return graph;
}

Graph AveragedNormGraph(const AveragedNormParams& params) {
  Graph graph;
  const int channels = params.image.back();
  std::mt19937 random(static_cast<uint32_t>(channels));
  graph.inputs = {Add(&graph, kTfLiteFloat32, params.image)};
  int tensor = graph.inputs[0];
  const auto append = [&](const char* op) {
    const int constant = AddChannelValues(&graph, channels, random), image = tensor;
    tensor = Add(&graph, kTfLiteFloat32, params.image);
    graph.nodes.push_back({op, {image, constant}, {tensor}, {}, {kTfLiteActNone}});
    if (params.reads_all) graph.outputs.push_back(tensor);
  };
  if (params.multiplies) append("MUL");
  if (params.adds) append("ADD");
  const auto pack = [&] {
    graph.outputs.push_back(AddSimple(&graph, contract::kQuantize, tensor, kTfLiteInt32, Packed(params.image)));
  };
  if (!params.averages_first) pack();
  std::vector<int> pool = params.pool;
  pool.push_back(kTfLiteActNone);
  const int average = AddSimple(&graph, "AVERAGE_POOL_2D", tensor, kTfLiteFloat32, {params.image[0], 1, 1, channels});
  graph.nodes.back().builtin = pool;
  graph.outputs.push_back(average);
  if (params.averages_first) pack();
  return graph;
}

int Pick(const RandomBits& random, int low, int high) {
  return low + static_cast<int>(random() % static_cast<uint32_t>(high - low + 1));
}

namespace {

Graph RandomGatedGraph(const RandomBits& random) {
  const auto pick = [&random](int low, int high) { return Pick(random, low, high); };
  // Half of these graphs have a number of channels for which a convolution supports a gate.
  GatedParams params = {{pick(1, 2), pick(1, 7), pick(1, 7)}, pick(0, 1) == 0 ? 64 * pick(1, 2) : pick(1, 70)};
  params.gate = pick(0, 2) == 0 ? std::vector<int>{1} : std::vector<int>{pick(0, 1) == 0 ? 1 : params.image[0], 1, 1};
  params.gate_first = pick(0, 1) == 1;
  params.addend_first = pick(0, 1) == 1;
  params.leaks = pick(0, 1) == 1;
  params.product_activation = pick(-1, 1);
  params.sum_activation = pick(-1, 1);
  return GatedGraph(params);
}

Graph RandomAveragedNormGraph(const RandomBits& random) {
  const auto pick = [&random](int low, int high) { return Pick(random, low, high); };
  AveragedNormParams params = {{pick(1, 2), pick(1, 7), pick(1, 7), pick(1, 100)}, pick(0, 2) > 0, pick(0, 2) > 0};
  // Half of the pools average the whole image.
  const bool is_global = pick(0, 1) == 1;
  const int width = is_global ? params.image[2] : pick(1, 3), height = is_global ? params.image[1] : pick(1, 3);
  params.pool = {is_global ? kTfLitePaddingValid : kTfLitePaddingSame, width + pick(0, 1), height + pick(0, 1), width,
                 height};
  params.averages_first = pick(0, 1) == 1;
  params.reads_all = pick(0, 3) == 0;
  return AveragedNormGraph(params);
}

}  // namespace

Graph RandomGraph(const RandomBits& random) {
  const auto pick = [&random](int low, int high) { return Pick(random, low, high); };
  const TfLiteType types[] = {kTfLiteFloat32, kTfLiteInt8, kTfLiteBool};
  switch (pick(0, 14)) {
    case 0:
      return QuantizeGraph({pick(1, 3), pick(1, 5), pick(1, 100)}, types[pick(0, 2)]);
    case 1:
      return DequantizeGraph({pick(1, 3), pick(1, 5), pick(1, 100)}, types[pick(0, 2)]);
    case 2: {
      Options options = {{contract::kPadding, pick(0, 1)},
                         {contract::kStrideWidth, pick(1, 3)},
                         {contract::kStrideHeight, pick(1, 3)},
                         {contract::kFilterWidth, pick(1, 3)},
                         {contract::kFilterHeight, pick(1, 3)}};
      return PoolGraph({pick(1, 2), pick(3, 7), pick(3, 7), pick(1, 3)}, options);
    }
    case 3:
      return ChainGraph(pick(0, 2), pick(2, 6), pick(1, 70));
    case 4:
      return ResidualGraph(pick(1, 5), pick(1, 5), pick(1, 70), pick(0, 1), pick(0, 1) == 1);
    case 5: {
      // The first of a pool's options is the padding, here SAME.
      const auto pool = [&pick] {
        return std::vector<int>{1, pick(1, 3), pick(1, 3), pick(1, 3), pick(1, 3), pick(0, 1)};
      };
      return PooledGraph({pick(1, 2), pick(1, 7), pick(1, 7), pick(1, 70)}, pool(), pool());
    }
    case 6:
      return BatchNormGraph(pick(1, 100), pick(1, 100), pick(0, 1) == 1);
    case 7: {
      JoinedParams params = {{pick(1, 2), pick(1, 7), pick(1, 7)}, {pick(1, 100)}, pick(0, 1) == 1, {}, pick(-1, 1)};
      if (pick(0, 1) == 1) params.channels.push_back(pick(1, 40));
      if (pick(0, 2) > 0) params.pool = {1, pick(1, 3), pick(1, 3), pick(1, 3), pick(1, 3), pick(0, 1)};
      return JoinedGraph(params);
    }
    case 8:
      return RandomGatedGraph(random);
    case 9: {
      Int8Params params = {{pick(1, 2), pick(3, 9), pick(3, 9), pick(1, 4)}, pick(1, 70), pick(1, 3), pick(1, 2)};
      params.same = pick(0, 1) == 1;
      params.has_bias = pick(0, 1) == 1;
      params.by_channel = pick(0, 1) == 1;
      // A third of the scales are powers of two. With such scales, many results are halfway between two int8 values.
      for (TfLiteQuantizationParams& grid : params.grids) {
        grid.scale *= pick(0, 1) == 1 ? 1.0f : static_cast<float>(pick(5, 20)) / 10.0f;
        if (pick(0, 2) == 0) grid.scale = std::exp2(std::round(std::log2(grid.scale)));
        grid.zero_point = pick(-128, 127);
      }
      if (pick(0, 1) == 1) params.addend = {1, 1, 1};
      params.addend_first = pick(0, 1) == 1;
      params.reads_all = pick(0, 1) == 1;
      params.activation = pick(0, 3);
      params.pool = {kTfLitePaddingSame, pick(1, 3), pick(1, 3), pick(1, 3), pick(1, 3)};
      params.takes_maximum = pick(0, 1) == 1;
      return Int8Graph(params);
    }
    case 10: {
      Int8NormParams params = {{pick(1, 2), pick(1, 7), pick(1, 7), pick(1, 100)}, pick(0, 2) > 0, pick(0, 2) > 0};
      for (TfLiteQuantizationParams& grid : params.grids) {
        grid.scale *= static_cast<float>(pick(5, 20)) / 10.0f;
        if (pick(0, 2) == 0) grid.scale = std::exp2(std::round(std::log2(grid.scale)));
        grid.zero_point = pick(-128, 127);
      }
      params.reads_all = pick(0, 3) == 0;
      params.slices = pick(1, 3);
      return Int8NormGraph(params);
    }
    case 11:
      return RandomAveragedNormGraph(random);
    case 12:
      return UnpackGraph({pick(1, 3), pick(1, 3), pick(1, 20)}, pick(0, 1) == 1, random());
    default:
      return RandomConvGraph(random);
  }
}

bool RuntimeAccepts(const Graph& graph) {
  const int tensors = static_cast<int>(graph.tensors.size());
  for (const GraphNode& node : graph.nodes) {
    for (int output : node.outputs) {
      if (std::count(node.inputs.begin(), node.inputs.end(), output) != 0) return false;
      if (output < 0 || output >= tensors) return false;
    }
    for (int input : node.inputs) {
      if (input < kOptionalTensor || input >= tensors) return false;
    }
  }
  const auto exists = [tensors](int tensor) { return tensor >= 0 && tensor < tensors; };
  return std::all_of(graph.inputs.begin(), graph.inputs.end(), exists) &&
         std::all_of(graph.outputs.begin(), graph.outputs.end(), exists);
}

}  // namespace litebnn::testing
