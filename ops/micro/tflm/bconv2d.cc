// The op LceBconv2d: binary convolution to float32, int8 or packed signs, by popcounts of one channel at a time.
//
// Filters are read from the model file, without a copy. The persistent memory of the arena holds the layer's
// description. It also holds the multiplier and bias if the file has none, or if they must be divided by the scale of
// an int8 output. For zero padding, the memory holds thresholds or offsets of the popcount, one for each channel and
// each class of pixels. Pixels with the same padded taps form a class.
#include <limits>

#include "litebnn_micro.h"
#include "node.h"

namespace tflite {
namespace micro {
namespace lce {
namespace {

constexpr int32_t kMin = std::numeric_limits<int32_t>::min();
constexpr int32_t kMax = std::numeric_limits<int32_t>::max();

enum { kInput, kFilter, kMultiplier, kBias, kThreshold, kInputs };
const char* const kNames[kInputs] = {"input", "filter", "post_activation_multiplier", "post_activation_bias",
                                     "output_threshold"};

struct Convolution {
  Options options;
  litebnn_bconv2d layer;
  TfLiteType type;  // of the output
  int32_t images;
  int32_t padding, pad_bottom, pad_right;
  bool pads_zeros;
  int32_t tap_words;
  int scratch;
};

bool ReadOptions(const Node& node, Convolution* state) {
  ::litebnn::Bconv2dOptions o;
  if (!node.ReadOptions(&o)) return false;
  litebnn_bconv2d& l = state->layer;
  l.channels_in = o.channels_in;
  l.dilation_height = o.dilation_height_factor;
  l.dilation_width = o.dilation_width_factor;
  l.stride_height = o.stride_height;
  l.stride_width = o.stride_width;
  l.pad_top = o.pad_top;
  l.pad_left = o.pad_left;
  state->padding = o.padding;
  state->pad_bottom = o.pad_bottom;
  state->pad_right = o.pad_right;
  state->pads_zeros = o.pad_values == contract::kPadValuesZero;
  const int32_t activation = o.fused_activation_function;
  l.clamp_min = activation == contract::kActivationNone ? -kMax : activation == contract::kActivationReluN1To1 ? -1 : 0;
  l.clamp_max = activation == contract::kActivationReluN1To1 ? 1 : activation == contract::kActivationRelu6 ? 6 : kMax;
  return true;
}

bool ReadFilter(const Node& node, Convolution* state) {
  litebnn_bconv2d& l = state->layer;
  Tensor filter;
  if (!node.ReadInput(kFilter, &filter)) return false;
  if (filter.type != kTfLiteInt32) return node.Error("type of the filter", "int32", filter.type);
  if (filter.rank() != 4) return node.Error("filter", "4 dimensions", filter.rank());
  if (filter.constant == nullptr) return node.Error("filter", "constants", 0);
  l.weights = static_cast<const uint32_t*>(filter.constant);
  l.channels_out = filter.size(0);
  l.filter_height = filter.size(1);
  l.filter_width = filter.size(2);
  const int32_t words = state->tap_words = filter.size(3);
  if (words == PackedWords(l.channels_in)) {
    l.groups = 1;
  } else if (words <= l.channels_in / 32 && l.channels_in % (words * 32) == 0) {
    l.groups = l.channels_in / (words * 32);
  } else {
    return node.Error("filter", "words of channels_in, or a divisor for groups", words);
  }
  if (l.channels_out % l.groups != 0) return node.Error("filter", "output channels for each group", l.channels_out);
  const int64_t window_words = static_cast<int64_t>(l.filter_height) * l.filter_width * words;
  if (window_words > kMax / 32 - 8) return node.Error("filter", "less than 2147483392 bits for an output channel", 0);
  // The padding bits of filters and inputs are 0, so whole words can be compared.
  l.tap_bits = words * 32;
  l.window_words = static_cast<int32_t>(window_words);
  l.kernel = &litebnn_popcount;
  return true;
}

bool ReadInput(const Node& node, Convolution* state) {
  litebnn_bconv2d& l = state->layer;
  Tensor input;
  if (!node.ReadInput(kInput, &input)) return false;
  if (input.type != kTfLiteInt32) return node.Error("type of the input", "int32", input.type);
  if (input.rank() != 4) return node.Error("input", "4 dimensions", input.rank());
  if (input.size(3) != PackedWords(l.channels_in)) return node.Error("input", "words of channels_in", input.size(3));
  state->images = input.size(0);
  l.input_height = input.size(1);
  l.input_width = input.size(2);
  // The dilation of a filter with one tap has no effect. It is set to 1, because the kernels advance a pointer by the
  // dilation, which must not overflow.
  if (l.filter_height == 1) l.dilation_height = 1;
  if (l.filter_width == 1) l.dilation_width = 1;
  if (l.dilation_height > kMax / (l.input_width * input.size(3))) {
    return node.Error("option dilation_height_factor", "a step of at most 2147483647 words", l.dilation_height);
  }
  const Axis height = {"height",          l.input_height, l.filter_height,  l.stride_height,
                       l.dilation_height, l.pad_top,      state->pad_bottom};
  const Axis width = {"width",          l.input_width, l.filter_width,  l.stride_width,
                      l.dilation_width, l.pad_left,    state->pad_right};
  return Slide(node, height, state->padding, &l.output_height, &l.pad_top) &&
         Slide(node, width, state->padding, &l.output_width, &l.pad_left);
}

// Reads one value for each output channel. `values` becomes null if the model omits these values.
bool ReadPerChannel(const Node& node, int index, TfLiteType type, int32_t channels, const void** values) {
  *values = nullptr;
  if (!node.HasInput(index)) return true;
  Tensor tensor;
  if (!node.ReadInput(index, &tensor)) return false;
  if (tensor.type != type) return node.Error(kNames[index], "another type", tensor.type);
  if (tensor.rank() != 1 || tensor.size(0) != channels) {
    return node.Error(kNames[index], "one value for each output channel", tensor.size(0));
  }
  if (tensor.constant == nullptr) return node.Error(kNames[index], "constants", 0);
  *values = tensor.constant;
  return true;
}

// Divides the multipliers or biases of the output channels by `scale`; `missing` replaces values that the model omits.
// If nothing changes, `result` is the array in the model file, otherwise a new array.
bool Factors(const Node& node, const void* values, float missing, float scale, int32_t channels, const float** result) {
  const float* const given = static_cast<const float*>(values);
  *result = given;
  if (given != nullptr && scale == 1) return true;
  float* const made = node.AllocateArray<float>(channels);
  if (made == nullptr) return false;
  for (int32_t i = 0; i < channels; ++i) made[i] = (given != nullptr ? given[i] : missing) / scale;
  *result = made;
  return true;
}

// The range of a window's taps that lie inside the input along one axis: from `first` to before `end`.
struct Inside {
  int32_t first, end;
  bool operator==(const Inside& other) const { return first == other.first && end == other.end; }
};

Inside InsideOf(int32_t at, int32_t input, int32_t taps, int32_t dilation) {
  // Padding may be larger than the input, so that no tap is inside.
  const int32_t first = at >= 0 ? 0 : (-at - 1) / dilation + 1;
  const int32_t end = at >= input ? 0 : (input - 1 - at) / dilation + 1;
  Inside inside = {first < taps ? first : taps, end < taps ? end : taps};
  if (inside.end <= inside.first) inside.first = inside.end = 0;
  return inside;
}

// The output positions along one axis, in classes. Windows of the same class have the same taps inside the input.
struct Classes {
  int32_t outputs, stride, before, input, taps, dilation;
  uint16_t* numbers;
  int32_t count;

  Inside at(int32_t i) const { return InsideOf(i * stride - before, input, taps, dilation); }

  bool Number(const Node& node) {
    numbers = node.AllocateArray<uint16_t>(outputs);
    if (numbers == nullptr) return false;
    count = 0;
    for (int32_t i = 0; i < outputs; ++i) {
      // The loop searches backwards for a position whose window has the same taps inside the input. In most cases, it
      // is the position just before.
      int32_t same = i - 1;
      while (same >= 0 && !(at(same) == at(i))) --same;
      numbers[i] = same >= 0 ? numbers[same] : static_cast<uint16_t>(count++);
      if (count > std::numeric_limits<uint16_t>::max()) return node.Error("padding", "fewer than 65536 classes", count);
    }
    return true;
  }

  Inside OfClass(int32_t number) const {
    int32_t i = 0;
    while (numbers[i] != number) ++i;
    return at(i);
  }
};

int32_t OnesOf(uint32_t word) {
  int32_t ones = 0;
  for (; word != 0; word &= word - 1) ++ones;
  return ones;
}

// Counts the one bits in a channel's filter at taps outside the input. The kernels read zero bits for the input at such
// taps, so these one bits are included in the kernels' popcounts.
int32_t OnesOutside(const Convolution& state, const uint32_t* filter, const Inside& rows, const Inside& columns) {
  const litebnn_bconv2d& l = state.layer;
  int32_t ones = 0;
  for (int32_t y = 0; y < l.filter_height; ++y) {
    for (int32_t x = 0; x < l.filter_width; ++x, filter += state.tap_words) {
      if (y >= rows.first && y < rows.end && x >= columns.first && x < columns.end) continue;
      for (int32_t word = 0; word < state.tap_words; ++word) ones += OnesOf(filter[word]);
    }
  }
  return ones;
}

// Allocates and computes the presets (litebnn_micro.h). A preset is a threshold for popcounts, or a number that is
// added to them. There is one preset for each channel and each class of output pixels. Pixels are in one class if their
// windows have the same padded taps.
bool PresetClasses(const Node& node, Convolution* state, const int32_t* thresholds, int32_t depth) {
  litebnn_bconv2d& l = state->layer;
  Classes rows = {l.output_height, l.stride_height,   l.pad_top, l.input_height,
                  l.filter_height, l.dilation_height, nullptr,   0};
  Classes columns = {l.output_width, l.stride_width,   l.pad_left, l.input_width,
                     l.filter_width, l.dilation_width, nullptr,    0};
  if (!rows.Number(node) || !columns.Number(node)) return false;
  const int64_t count = static_cast<int64_t>(rows.count) * columns.count;
  if (count > std::numeric_limits<uint16_t>::max()) {
    return node.Error("padding", "fewer than 65536 classes", static_cast<int32_t>(count > kMax ? kMax : count));
  }
  uint32_t* preset = node.AllocateArray<uint32_t>(count * l.channels_out);
  int32_t* depths = node.AllocateArray<int32_t>(count);
  if (preset == nullptr || depths == nullptr) return false;
  l.presets = preset;
  l.depths = depths;
  const int32_t group_channels = l.channels_in / l.groups, taps = l.filter_height * l.filter_width;
  for (int32_t row = 0; row < rows.count; ++row) {
    const Inside inside_rows = rows.OfClass(row);
    for (int32_t column = 0; column < columns.count; ++column) {
      const Inside inside = columns.OfClass(column);
      const int32_t taps_inside = (inside_rows.end - inside_rows.first) * (inside.end - inside.first);
      const int32_t padded = (taps - taps_inside) * group_channels;
      *depths++ = depth - padded;
      for (int32_t channel = 0; channel < l.channels_out; ++channel) {
        const uint32_t* const filter = l.weights + static_cast<int64_t>(channel) * l.window_words;
        const int64_t ones = OnesOutside(*state, filter, inside_rows, inside);
        int64_t value = thresholds != nullptr ? thresholds[channel] + ones - padded / 2 : -ones;
        if (value < kMin) value = kMin;
        if (value > kMax) value = kMax;
        *preset++ = static_cast<uint32_t>(value);
      }
    }
  }
  for (int32_t y = 0; y < l.output_height; ++y) {
    rows.numbers[y] = static_cast<uint16_t>(rows.numbers[y] * columns.count);
  }
  l.row_class = rows.numbers;
  l.column_class = columns.numbers;
  return true;
}

bool Preset(const Node& node, Convolution* state, const int32_t* thresholds) {
  litebnn_bconv2d& l = state->layer;
  const int32_t group_channels = l.channels_in / l.groups;
  const int32_t depth = l.filter_height * l.filter_width * group_channels;
  const bool is_padded = state->padding == contract::kPaddingSame || l.pad_top > 0 || l.pad_left > 0 ||
                         state->pad_bottom > 0 || state->pad_right > 0;
  if (is_padded && state->pads_zeros) {
    if (thresholds != nullptr && group_channels % 2 != 0) {
      return node.Error("option channels_in", "an even number for each group with packed output and zero padding",
                        group_channels);
    }
    return PresetClasses(node, state, thresholds, depth);
  }
  int32_t* const depths = node.AllocateArray<int32_t>(1);
  if (depths == nullptr) return false;
  *depths = depth;
  l.depths = depths;
  // The cast is allowed, because C++ lets a signed integer be read through a pointer to its unsigned type.
  l.presets = reinterpret_cast<const uint32_t*>(thresholds);
  return true;
}

bool ReadOutput(const Node& node, Convolution* state) {
  litebnn_bconv2d& l = state->layer;
  Tensor output;
  if (!node.ReadOutput(&output)) return false;
  state->type = output.type;
  const bool is_bits = output.type == kTfLiteInt32;
  if (!is_bits && output.type != kTfLiteFloat32 && output.type != kTfLiteInt8) {
    return node.Error("type of the output", "float32, int8 or int32", output.type);
  }
  const int32_t last = is_bits ? PackedWords(l.channels_out) : l.channels_out;
  const int32_t expected[] = {state->images, l.output_height, l.output_width, last};
  if (!node.CheckOutputShape(output, expected)) return false;
  if (output.type == kTfLiteInt8 && !node.CheckQuantization("output", output)) return false;

  const void *multiplier, *bias, *thresholds;
  if (!ReadPerChannel(node, kMultiplier, kTfLiteFloat32, l.channels_out, &multiplier) ||
      !ReadPerChannel(node, kBias, kTfLiteFloat32, l.channels_out, &bias) ||
      !ReadPerChannel(node, kThreshold, kTfLiteInt32, l.channels_out, &thresholds)) {
    return false;
  }
  if (is_bits) {
    if (thresholds == nullptr) return node.Error(kNames[kThreshold], "a tensor for packed output", 0);
    return Preset(node, state, static_cast<const int32_t*>(thresholds));
  }
  const float scale = output.type == kTfLiteInt8 ? output.scale : 1;
  l.output_zero_point = output.zero_point;
  return Factors(node, multiplier, 1, scale, l.channels_out, &l.multiplier) &&
         Factors(node, bias, 0, scale, l.channels_out, &l.bias) && Preset(node, state, nullptr);
}

TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode* node) {
  const Node checked(context, node, contract::kBconv2d, kNames);
  if (!checked.CheckArity(2, kInputs)) return kTfLiteError;
  Convolution* const state = static_cast<Convolution*>(node->user_data);
  if (!ReadOptions(checked, state) || !ReadFilter(checked, state) || !ReadInput(checked, state) ||
      !ReadOutput(checked, state)) {
    return kTfLiteError;
  }
  const int32_t words = litebnn_bconv2d_scratch_words(&state->layer);
  return checked.RequestScratch(words, &state->scratch) ? kTfLiteOk : kTfLiteError;
}

TfLiteStatus Invoke(TfLiteContext* context, TfLiteNode* node) {
  const Convolution& state = *static_cast<const Convolution*>(node->user_data);
  const litebnn_bconv2d& l = state.layer;
  const uint32_t* input = static_cast<const uint32_t*>(DataOf(context, node->inputs->data[kInput]));
  void* const output = DataOf(context, node->outputs->data[0]);
  uint32_t* const scratch = static_cast<uint32_t*>(GetMicroContext(context)->GetScratchBuffer(state.scratch));
  const int32_t input_words = l.input_height * l.input_width * PackedWords(l.channels_in);
  const int32_t pixels = l.output_height * l.output_width;
  for (int32_t image = 0; image < state.images; ++image, input += input_words) {
    if (state.type == kTfLiteFloat32) {
      litebnn_bconv2d_float(&l, input, static_cast<float*>(output) + image * pixels * l.channels_out, scratch);
    } else if (state.type == kTfLiteInt8) {
      litebnn_bconv2d_int8(&l, input, static_cast<int8_t*>(output) + image * pixels * l.channels_out, scratch);
    } else {
      uint32_t* const words = static_cast<uint32_t*>(output) + image * pixels * PackedWords(l.channels_out);
      litebnn_bconv2d_bits(&l, input, words, scratch);
    }
  }
  return kTfLiteOk;
}

}  // namespace

Op Bconv2dOp() { return MakeOp<Convolution>(contract::kBconv2d, Prepare, Invoke); }

}  // namespace lce
}  // namespace micro
}  // namespace tflite
