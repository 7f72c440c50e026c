// Tests the custom ops in the fake runtime of fake_runtime.h, as custom ops and through the delegate: which nodes they
// refuse, and with which messages. The Python tests in tests/ops/ compare the ops' results with NumPy.
#include <gtest/gtest.h>

#include <climits>
#include <cstring>
#include <limits>

#include "tests/support/refusals.h"
#include "tflite/ops/contract.h"

namespace litebnn::testing {
namespace {

constexpr int kMax = std::numeric_limits<int>::max();

// The indices of the input tensors of a ConvGraph.
constexpr size_t kInput = 0, kFilter = 1, kMultiplier = 2, kBias = 3, kThreshold = 4, kOutput = 5;

void ExpectRefused(const Graph& graph, const std::string& message) {
  const std::string& op = graph.nodes.back().op;
  const std::string index = std::to_string(graph.nodes.size() - 1);
  const std::string custom = ErrorsAsCustomOps(graph), delegate = ErrorsOfDelegate(graph);
  EXPECT_NE(custom.find("litebnn: " + op + ": " + message), std::string::npos) << custom << "\nlacks: " << message;
  EXPECT_NE(custom.find("Node number " + index), std::string::npos) << custom;
  EXPECT_EQ(custom.find("litebnn: "), custom.rfind("litebnn: ")) << "one error, and no more: " << custom;
  EXPECT_NE(delegate.find("litebnn: " + op + ", node " + index + ": " + message), std::string::npos)
      << delegate << "\nlacks: " << message;
}

void ExpectAccepted(const Graph& graph) {
  FakeRuntime custom(graph);
  EXPECT_TRUE(custom.Allocate()) << custom.errors();
  const DelegatePointer delegate = MakeDelegate();
  FakeRuntime delegated(graph, delegate.get(), 100);
  EXPECT_TRUE(delegated.Allocate()) << delegated.errors();
}

Graph WithOptions(Graph graph, const Options& options) {
  graph.nodes.back().options = EncodeOptions(options);
  return graph;
}

struct Range {
  const char* name;
  int minimum, maximum;
};
const Range kConvOptions[] = {{contract::kChannelsIn, 1, kMax},
                              {contract::kDilationHeightFactor, 1, kMax},
                              {contract::kDilationWidthFactor, 1, kMax},
                              {contract::kFusedActivationFunction, 0, 3},
                              {contract::kPadValues, 0, 1},
                              {contract::kPadding, 0, 1},
                              {contract::kStrideHeight, 1, kMax},
                              {contract::kStrideWidth, 1, kMax}};
const Range kPoolOptions[] = {{contract::kPadding, 0, 1},
                              {contract::kStrideWidth, 1, kMax},
                              {contract::kStrideHeight, 1, kMax},
                              {contract::kFilterWidth, 1, kMax},
                              {contract::kFilterHeight, 1, kMax}};

void ExpectRangeHeld(const Graph& graph, const Options& options, const Range& range) {
  const std::string expected = std::string("option ") + range.name + ": expected an integer from " +
                               std::to_string(range.minimum) + " to " + std::to_string(range.maximum) + ", found ";
  Options changed = options;
  changed.erase(range.name);
  ExpectRefused(WithOptions(graph, changed), expected + "none");
  for (int64_t value : {int64_t{range.minimum} - 1, int64_t{-1} - kMax, int64_t{range.maximum} + 1, int64_t{1} << 31}) {
    changed[range.name] = value;
    ExpectRefused(WithOptions(graph, changed), expected + std::to_string(value));
  }
  // In each of these tests, the type of an option's value is replaced by the type of a float, a string or a vector.
  for (int type : {3, 5, 10, 63}) {
    Graph other = WithOptions(graph, options);
    const auto position = std::distance(options.begin(), options.find(range.name));
    auto& bytes = other.nodes.back().options;
    bytes[bytes.size() - 10 - options.size() + static_cast<size_t>(position)] = static_cast<uint8_t>(type << 2 | 3);
    ExpectRefused(other, expected + "a value of another type");
  }
}

TEST(Conv, HoldsTheRangeOfEveryOption) {
  for (const Range& range : kConvOptions) {
    SCOPED_TRACE(range.name);
    ExpectRangeHeld(ConvGraph({}), DefaultConvOptions({}), range);
  }
}

TEST(Pool, HoldsTheRangeOfEveryOption) {
  for (const Range& range : kPoolOptions) {
    SCOPED_TRACE(range.name);
    ExpectRangeHeld(PoolGraph({1, 5, 5, 2}, {}), DefaultPoolOptions(), range);
  }
}

TEST(Conv, LargestOptions) {
  const auto with = [](const char* option, int64_t value = kMax) {
    ConvParams params;
    Options options = DefaultConvOptions(params);
    options[option] = value;
    return WithOptions(ConvGraph(params), options);
  };
  // A stride beyond the end of the input is accepted: the output then has a single row or column.
  ExpectAccepted(with(contract::kStrideHeight));
  ExpectAccepted(with(contract::kStrideWidth));
  ExpectRefused(with(contract::kDilationHeightFactor), "input (tensor 0 'a tensor'): height: expected at most");
  ExpectRefused(with(contract::kDilationWidthFactor), "input (tensor 0 'a tensor'): width: expected at most");
  ExpectRefused(with(contract::kDilationHeightFactor, 1 << 29),
                "input (tensor 0 'a tensor'): shape: expected one that there is memory for with its padding, found "
                "[1, 5, 6, 2]");
  ExpectRefused(with(contract::kChannelsIn), "filter (tensor 1 'a tensor'): last dimension: expected");
  ExpectRefused(with(contract::kFusedActivationFunction), "option fused_activation_function");
  ExpectRefused(with(contract::kPadValues), "option pad_values");
  ExpectRefused(with(contract::kPadding), "option padding");
}

TEST(Conv, ExplicitPaddingStandsInPlaceOfPadding) {
  const auto with = [](Options pads, bool keep_padding = false) {
    ConvParams params;
    Options options = DefaultConvOptions(params);
    if (!keep_padding) options.erase(contract::kPadding);
    for (const auto& [key, value] : pads) options[key] = value;
    return WithOptions(ConvGraph(params), options);
  };
  const Options some = {
      {contract::kPadTop, 0}, {contract::kPadBottom, 3}, {contract::kPadLeft, 1}, {contract::kPadRight, 0}};
  ExpectAccepted(with(some));
  ExpectRefused(with({}), "option padding: expected an integer from 0 to 1, found none");
  ExpectRefused(with({{contract::kPadTop, 1}}),
                "option pad_bottom: expected an integer from 0 to 2147483647, found none");
  for (const auto& [key, value] : some) {
    Options negative = some;
    negative[key] = -1;
    ExpectRefused(with(negative), "option " + key);
    // If the option `padding` is present, the explicit padding options are ignored like unknown keys.
    ExpectAccepted(with(negative, /*keep_padding=*/true));
    Options huge = some;
    huge[key] = kMax;
    ExpectRefused(with(huge), "input (tensor 0 'a tensor')");
  }
}

TEST(Pool, TensorsOfWrongTypeOrRank) {
  for (const size_t tensor : {size_t{0}, size_t{1}}) {
    Graph graph = PoolGraph({1, 5, 5, 2}, DefaultPoolOptions());
    graph.tensors[tensor].type = kTfLiteFloat32;
    ExpectRefused(graph, tensor == 0 ? "input (tensor 0 'a tensor'): type: expected INT32, found FLOAT32"
                                     : "output (tensor 1 'a tensor'): type: expected INT32, found FLOAT32");
  }
  Graph graph = PoolGraph({1, 5, 5, 2}, DefaultPoolOptions());
  graph.tensors[0].shape = {5, 5, 2};
  ExpectRefused(graph, "input (tensor 0 'a tensor'): shape: expected 4 dimensions, found [5, 5, 2]");
}

TEST(Pool, LargestOptions) {
  const auto with = [](Options changed) {
    Options options = DefaultPoolOptions();
    for (const auto& [key, value] : changed) options[key] = value;
    return PoolGraph({1, 5, 5, 2}, options);
  };
  ExpectAccepted(with({{contract::kStrideHeight, kMax}, {contract::kStrideWidth, kMax}}));
  ExpectRefused(with({{contract::kFilterHeight, kMax}}), "input (tensor 0 'a tensor'): height: expected at most");
  ExpectRefused(with({{contract::kFilterWidth, kMax}}), "input (tensor 0 'a tensor'): width: expected at most");
  ExpectRefused(with({{contract::kFilterHeight, 6}, {contract::kPadding, contract::kPaddingValid}}),
                "input (tensor 0 'a tensor'): height: expected at least 6");
  // One window covers the whole padded input. The op must prepare and run without a loop over the filter's two billion
  // rows.
  FakeRuntime runtime(with({{contract::kStrideHeight, 5}, {contract::kFilterHeight, kMax}}));
  ASSERT_TRUE(runtime.Allocate()) << runtime.errors();
  EXPECT_TRUE(runtime.Invoke());
}

TEST(Conv, OptionsThatAreNoMap) {
  for (const Graph& graph : {ConvGraph({}), PoolGraph({1, 5, 5, 2}, DefaultPoolOptions())}) {
    Graph broken = graph;
    broken.nodes[0].options.clear();
    ExpectRefused(broken, "option ");
    broken.nodes[0].options = {1, 2, 3};
    ExpectRefused(broken, "option ");
  }
}

TEST(Conv, OptionsTruncatedAnywhere) {
  const Graph whole = ConvGraph({});
  for (size_t size = 0; size < whole.nodes[0].options.size(); ++size) {
    Graph graph = whole;
    graph.nodes[0].options.resize(size);
    ExpectRefused(graph, "option ");
  }
}

TEST(Conv, ShapesThatDoNotAgree) {
  Graph graph = ConvGraph({});
  graph.tensors[kInput].shape[3] = 3;
  ExpectRefused(graph, "input (tensor 0 'a tensor'): last dimension: expected 2 words for 64 channels, found 3");

  graph = ConvGraph({});
  graph.tensors[kInput].shape = {1, 5, 12};
  ExpectRefused(graph, "input (tensor 0 'a tensor'): shape: expected 4 dimensions, found [1, 5, 12]");

  graph = ConvGraph({});
  graph.tensors[kFilter].shape = {40, 3, 1, 6};
  ExpectRefused(graph,
                "filter (tensor 1 'a tensor'): last dimension: expected 2 words, or a divisor for groups, found 6");

  graph = ConvGraph({});
  graph.tensors[kFilter].shape = {40 * 3, 3, 2};
  ExpectRefused(graph, "filter (tensor 1 'a tensor'): shape: expected 4 dimensions, found [120, 3, 2]");

  ConvParams grouped;
  grouped.groups = 2;
  graph = ConvGraph(grouped);
  graph.tensors[kFilter].shape = {45, 2, 4, 1};
  ExpectRefused(graph, "filter (tensor 1 'a tensor'): first dimension: expected a multiple of 2 groups, found 45");

  ConvParams valid;
  valid.changed = {{contract::kPadding, contract::kPaddingValid}};
  graph = ConvGraph(valid);
  graph.tensors[kInput].shape = {1, 2, 6, 2};
  ExpectRefused(graph,
                "input (tensor 0 'a tensor'): height: expected at least 3, which the filter reaches over, found 2");
}

TEST(Conv, ShapesThatOverflow) {
  for (const std::vector<int>& shape :
       {std::vector<int>{kMax, kMax, kMax, 2}, {65536, 65536, 1, 2}, {0, 5, 6, 2}, {1, -5, 6, 2}, {1, 1 << 30, 1, 2}}) {
    Graph graph = ConvGraph({});
    graph.tensors[kInput].shape = shape;
    // The graph has no inputs, so that the runtime allocates no memory for the huge tensor.
    graph.inputs.clear();
    ExpectRefused(graph, "input (tensor 0 'a tensor'): expected 1 to 2147483647 values");
  }
  Graph graph = ConvGraph({});
  graph.tensors[kFilter].shape = {kMax, kMax, kMax, 2};
  ExpectRefused(graph, "filter (tensor 1 'a tensor'): expected 1 to 2147483647 values");
  // The input has an allowed number of values, but the output has more than 2147483647.
  graph = ConvGraph({});
  graph.tensors[kInput].shape = {1, 20000, 20000, 2};
  graph.inputs.clear();
  ExpectRefused(graph,
                "output (tensor 5 'a tensor'): shape: expected at most 2147483647 values, found [1, 20000, 20000, 40]");
}

TEST(Conv, ConstantsOfWrongLengthOrType) {
  for (size_t tensor : {kMultiplier, kBias, kThreshold}) {
    const char* const names[] = {"", "", "post_activation_multiplier", "post_activation_bias", "output_threshold"};
    const std::string role = std::string(names[tensor]) + " (tensor " + std::to_string(tensor) + " 'a tensor'): ";
    ConvParams params;
    params.output = tensor == kThreshold ? kTfLiteInt32 : kTfLiteFloat32;

    Graph graph = ConvGraph(params);
    graph.tensors[tensor].shape = {39};
    ExpectRefused(graph, role + "length: expected 40, one for each output channel, found 39");
    graph.tensors[tensor].shape = {41};
    ExpectRefused(graph, role + "expected 164 bytes of data, found 160");
    graph.tensors[tensor].shape = {40, 1};
    ExpectRefused(graph, role + "shape: expected 1 dimensions, found [40, 1]");

    graph = ConvGraph(params);
    const bool is_threshold = tensor == kThreshold;
    graph.tensors[tensor].type = is_threshold ? kTfLiteFloat32 : kTfLiteInt32;
    ExpectRefused(
        graph, role + (is_threshold ? "type: expected INT32, found FLOAT32" : "type: expected FLOAT32, found INT32"));

    graph = ConvGraph(params);
    graph.tensors[tensor].constant.clear();
    ExpectRefused(graph, role + "values: expected constants, found none");

    graph = ConvGraph(params);
    graph.tensors[tensor].misaligned = true;
    ExpectRefused(graph, role + "expected data aligned to 4 bytes");
  }
}

TEST(Conv, FilterOfWrongTypeOrShort) {
  Graph graph = ConvGraph({});
  graph.tensors[kFilter].type = kTfLiteFloat32;
  ExpectRefused(graph, "filter (tensor 1 'a tensor'): type: expected INT32, found FLOAT32");
  graph = ConvGraph({});
  graph.tensors[kFilter].type = kTfLiteInt64;
  ExpectRefused(graph,
                "filter (tensor 1 'a tensor'): expected 1 to 2147483647 values of type FLOAT32, INT32, INT8 or BOOL, "
                "found INT64 of shape [40, 3, 3, 2]");
  graph = ConvGraph({});
  graph.tensors[kFilter].constant.resize(100);
  ExpectRefused(graph, "filter (tensor 1 'a tensor'): expected 2880 bytes of data, found 100");
  graph = ConvGraph({});
  graph.tensors[kFilter].constant.clear();
  ExpectRefused(graph, "filter (tensor 1 'a tensor'): values: expected constants, found none");
  graph = ConvGraph({});
  graph.nodes[0].inputs[1] = kOptionalTensor;
  ExpectRefused(graph, "filter: expected a tensor, found none");
}

TEST(Conv, PackedOutput) {
  ConvParams params;
  params.output = kTfLiteInt32;
  Graph graph = ConvGraph(params);
  graph.tensors[kOutput].shape[3] = 40;
  ExpectRefused(graph,
                "output (tensor 5 'a tensor'): shape: expected 4 dimensions, the last 2 words for 40 channels, "
                "found [1, 5, 6, 40]");
  graph = ConvGraph(params);
  graph.nodes[0].inputs[4] = kOptionalTensor;
  ExpectRefused(graph, "output_threshold: expected a tensor for packed output, found none");
  params.channels_in = 33;
  params.changed = {{contract::kPadValues, contract::kPadValuesZero}};
  ExpectRefused(ConvGraph(params),
                "option channels_in: expected an even number for each group with packed output and "
                "zero padding, found 33");
}

TEST(Conv, OutputOfWrongTypeOrQuantization) {
  Graph graph = ConvGraph({});
  graph.tensors[kOutput].type = kTfLiteInt64;
  ExpectRefused(graph, "output (tensor 5 'a tensor'): type: expected FLOAT32 or INT8 or INT32, found INT64");
  ConvParams params;
  params.output = kTfLiteInt8;
  for (float scale : {0.0f, -1.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    graph = ConvGraph(params);
    graph.tensors[kOutput].quantization.scale = scale;
    ExpectRefused(graph, "output (tensor 5 'a tensor'): quantization: expected one scale above 0");
  }
  for (int zero_point : {-129, 128, kMax}) {
    graph = ConvGraph(params);
    graph.tensors[kOutput].quantization.zero_point = zero_point;
    ExpectRefused(graph, "output (tensor 5 'a tensor'): quantization: expected a zero point from -128 to 127");
  }
}

TEST(Conv, TensorsThatAreNotThere) {
  for (int index : {-2, 6, kMax, -kMax}) {
    Graph graph = ConvGraph({});
    graph.nodes[0].inputs[0] = index;
    ExpectRefused(graph, "input: expected a tensor from 0 to 5, found " + std::to_string(index));
    graph = ConvGraph({});
    graph.nodes[0].outputs[0] = index;
    graph.outputs.clear();
    ExpectRefused(graph, "output: expected a tensor from 0 to 5, found " + std::to_string(index));
  }
  Graph graph = ConvGraph({});
  graph.nodes[0].inputs.resize(1);
  ExpectRefused(graph, "inputs: expected 2 to 5, found 1");
  graph.nodes[0].inputs.resize(6);
  ExpectRefused(graph, "inputs: expected 2 to 5, found 6");
  graph = ConvGraph({});
  graph.nodes[0].outputs.clear();
  graph.outputs.clear();
  ExpectRefused(graph, "outputs: expected 1, found 0");
  graph = ConvGraph({});
  graph.nodes[0].inputs[kBias] = kOptionalTensor;
  graph.nodes[0].outputs = {static_cast<int>(kBias)};
  ExpectRefused(graph, "output (tensor 3 'a tensor'): expected a tensor to write, found a constant");
}

TEST(Dequantize, OutputsOfAFewBytes) {
  for (int channels = 1; channels < 10; ++channels) ExpectAccepted(DequantizeGraph({1, channels}, kTfLiteInt8));
}

TEST(Quantize, WrongZeroPoint) {
  for (const int zero_point : {-129, 128, 200, kMax, std::numeric_limits<int>::min()}) {
    Graph graph = QuantizeGraph({2, 5}, kTfLiteInt8);
    graph.tensors[kInput].quantization = {0.5f, zero_point};
    ExpectRefused(graph, "input (tensor 0 'a tensor'): quantization: expected a zero point from -128 to 127, found " +
                             std::to_string(zero_point));
  }
  for (const int zero_point : {-128, 127}) {
    Graph graph = QuantizeGraph({2, 5}, kTfLiteInt8);
    graph.tensors[kInput].quantization = {0.5f, zero_point};
    ExpectAccepted(graph);
  }
}

TEST(Quantize, WrongTensors) {
  Graph graph = QuantizeGraph({2, 5}, kTfLiteFloat32);
  graph.tensors[0].type = kTfLiteUInt8;
  ExpectRefused(graph,
                "input (tensor 0 'a tensor'): expected 1 to 2147483647 values of type FLOAT32, INT32, INT8 or BOOL, "
                "found UINT8");
  graph.tensors[0].type = kTfLiteInt32;
  ExpectRefused(graph, "input (tensor 0 'a tensor'): type: expected FLOAT32 or INT8 or BOOL, found INT32");
  graph = QuantizeGraph({2, 5}, kTfLiteFloat32);
  graph.tensors[1].type = kTfLiteFloat32;
  ExpectRefused(graph, "output (tensor 1 'a tensor'): type: expected INT32, found FLOAT32");
  graph = QuantizeGraph({2, 5}, kTfLiteFloat32);
  graph.tensors[0].shape = {};
  ExpectRefused(graph, "input (tensor 0 'a tensor'): shape: expected at least 1 dimension, found a scalar");
}

TEST(Dequantize, WrongTensors) {
  Graph graph = DequantizeGraph({2, 70}, kTfLiteFloat32);
  graph.tensors[1].shape = {2, 97};
  ExpectRefused(graph,
                "output (tensor 1 'a tensor'): last dimension: expected a number of channels that packs into 3 "
                "words, found 97");
  for (int channels : {0, -1, kMax}) {
    graph.tensors[1].shape = {2, channels};
    ExpectRefused(graph,
                  "output (tensor 1 'a tensor'): last dimension: expected a number of channels that packs into 3");
  }
  graph.tensors[1].shape = {2, 1, 70};
  ExpectRefused(graph, "output (tensor 1 'a tensor'): shape: expected 2 dimensions as the input has, found [2, 1, 70]");
  graph = DequantizeGraph({2, 70}, kTfLiteFloat32);
  graph.tensors[1].type = kTfLiteInt32;
  ExpectRefused(graph, "output (tensor 1 'a tensor'): type: expected FLOAT32 or INT8 or BOOL, found INT32");
  graph = DequantizeGraph({2, 70}, kTfLiteInt8);
  graph.tensors[1].quantization.scale = 0;
  ExpectRefused(graph, "output (tensor 1 'a tensor'): quantization: expected one scale above 0, found 0");
  // The value 1 divided by the smallest scale is far out of the range of int8, so the op saturates.
  graph.tensors[1].quantization.scale = std::numeric_limits<float>::denorm_min();
  ExpectAccepted(graph);
}

// The indices of the tensors of an UnpackGraph.
constexpr size_t kSigns = 1, kScales = 2, kZeros = 3, kWeights = 4;

template <typename T>
std::vector<T> Constant(const Graph& graph, size_t tensor) {
  const std::vector<uint8_t>& bytes = graph.tensors[tensor].constant;
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(UnpackWeights, AreConstantsOfTheRuntime) {
  for (const std::vector<int>& shape : std::vector<std::vector<int>>{{5, 3, 3, 7}, {1, 3, 3, 40}, {2, 32}, {1, 1}}) {
    for (bool has_zeros : {false, true}) {
      const Graph graph = UnpackGraph(shape, has_zeros);
      const auto signs = Constant<uint32_t>(graph, kSigns), zeros = Constant<uint32_t>(graph, kZeros);
      const auto scales = Constant<float>(graph, kScales);
      const size_t rows = static_cast<size_t>(shape[0]), words = signs.size() / rows;
      const DelegatePointer delegate = MakeDelegate();
      FakeRuntime delegated(graph, delegate.get(), 100), custom(graph);
      // XNNPACK asks for nodes before the runtime allocates tensors. By then, the weights must be constant.
      const TfLiteTensor& weights = delegated.tensor(kWeights);
      ASSERT_EQ(weights.allocation_type, kTfLiteMmapRo) << delegated.errors();
      const size_t count = weights.bytes / sizeof(float) / rows;
      for (size_t i = 0; i < rows * count; ++i) {
        const size_t word = i / count * words + i % count / 32, bit = i % count % 32;
        const float scale = scales[rows == 1 ? i % scales.size() : i / count];
        const bool is_zero = has_zeros && (zeros[word] >> bit & 1) != 0;
        const float expected = is_zero ? 0.0f : (signs[word] >> bit & 1) != 0 ? -scale : scale;
        EXPECT_EQ(static_cast<const float*>(weights.data)[i], expected) << i;
      }
      for (FakeRuntime* runtime : {&delegated, &custom}) {
        ASSERT_TRUE(runtime->Allocate()) << runtime->errors();
        runtime->FillInputs(1);
        ASSERT_TRUE(runtime->Invoke()) << runtime->errors();
      }
      EXPECT_EQ(delegated.Outputs(), custom.Outputs());
    }
  }
}

TEST(UnpackWeights, WrongTensors) {
  const auto expect_refused = [](const Graph& graph, const std::string& message) {
    for (const std::string& errors : {ErrorsAsCustomOps(graph), ErrorsOfDelegate(graph)}) {
      EXPECT_NE(errors.find(message), std::string::npos) << errors << "\nlacks: " << message;
    }
  };
  Graph graph = UnpackGraph({2, 3, 40}, true);
  for (size_t tensor : {kSigns, kScales, kZeros}) {
    Graph computed = graph;
    computed.tensors[tensor].constant.clear();
    expect_refused(computed, "expected a constant, found a computed tensor");
    computed = graph;
    computed.tensors[tensor].constant.resize(4);
    expect_refused(computed, "bytes");
    Graph wrong = graph;
    wrong.tensors[tensor].type = kTfLiteInt8;
    expect_refused(wrong, "found INT8");
  }
  const auto with_shape = [&](size_t tensor, const std::vector<int>& shape) {
    Graph changed = graph;
    changed.tensors[tensor].shape = shape;
    return changed;
  };
  for (const std::vector<int>& shape : std::vector<std::vector<int>>{
           {2, 3, 43}, {3, 3, 40}, {240}, {}, {2, 0}, {0, INT_MAX, INT_MAX, INT_MAX}, {2, INT_MAX, INT_MAX}}) {
    expect_refused(with_shape(kWeights, shape), "output (tensor 4 'a tensor'):");
  }
  expect_refused(with_shape(kSigns, {8}), "signs (tensor 1 'a tensor'): shape: expected 2 dimensions, found [8]");
  expect_refused(with_shape(kScales, {1}), "scales (tensor 2 'a tensor'): shape: expected a value for each of 2");
  expect_refused(with_shape(kZeros, {4, 2}), "zeros (tensor 3 'a tensor'): shape: expected that of the signs");
  graph.nodes[0].inputs[1] = kOptionalTensor;
  expect_refused(graph, "scales: expected a tensor, found none");
}

TEST(UnpackWeights, FromTheSameBitsTakeLimitedMemory) {
  Graph graph = UnpackGraph({8, 32768}, false);
  for (int i = 0; i < 200; ++i) {
    graph.tensors.push_back(graph.tensors[kWeights]);
    graph.nodes.push_back(graph.nodes[0]);
    graph.nodes.back().outputs[0] = static_cast<int>(graph.tensors.size()) - 1;
  }
  EXPECT_NE(ErrorsOfDelegate(graph).find("repacked weights: expected at most"), std::string::npos);
}

}  // namespace
}  // namespace litebnn::testing
