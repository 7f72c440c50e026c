// The interface of the compute kernels: plain pointers and shapes, no TensorFlow Lite.
//
// Callers validate: every size is positive, and no product of sizes overflows. Functions do not throw; those that can
// run out of memory return null or false. The bit layout is that of docs/ops.md: bit 1 is -1, channel 0 is the least
// significant bit, padding bits are 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace litebnn {

constexpr int32_t kBitsPerWord = 32;

// Static, because files that are compiled for different ISAs must share no symbol.
static constexpr int32_t PackedWords(int32_t channels) {
  return channels / kBitsPerWord + (channels % kBitsPerWord != 0 ? 1 : 0);
}

class ThreadPool;

// An instruction set. Defined in kernels/isa/isa.h, opaque to users of this header.
struct Isa;

// Returns the ISA with the name `isa` ("portable", "avx2", ...); a named ISA computes every layer itself. If `isa` is
// null or empty, the environment variable LITEBNN_ISA is the name. Without either, returns the fastest ISA of this CPU,
// which may leave a layer to another ISA that is faster for its shape. Null if the name is unknown or this CPU cannot
// run that ISA.
const Isa* FindIsa(const char* isa);
const char* IsaName(const Isa& isa);
// Names of the ISAs that this CPU can run, fastest first, separated by ", ".
const char* AvailableIsas();

// Packs signs: `rows` rows of `channels` values become rows of PackedWords(channels) words.
void PackFloat32Signs(const Isa& isa, ThreadPool& pool, const float* input, int64_t rows, int32_t channels,
                      uint32_t* output);
void PackInt8Signs(const Isa& isa, ThreadPool& pool, const int8_t* input, int64_t rows, int32_t channels,
                   int32_t zero_point, uint32_t* output);
void PackBoolSigns(const Isa& isa, ThreadPool& pool, const bool* input, int64_t rows, int32_t channels,
                   uint32_t* output);
// Packs the signs of input * multiplier + addend, both given per channel. The product and the sum are rounded
// separately. Output rows are `output_words` words apart.
void PackAffineSigns(const Isa& isa, ThreadPool& pool, const float* input, const float* multiplier, const float* addend,
                     int64_t rows, int32_t channels, uint32_t* output, int64_t output_words);

// Unpacks signs to float, int8_t or bool: bit 0 becomes `plus_one`, bit 1 becomes `minus_one`.
template <typename T>
void UnpackSigns(ThreadPool& pool, const uint32_t* input, int64_t rows, int32_t channels, T plus_one, T minus_one,
                 T* output);

struct MaxPool2dGeometry {
  int32_t batch, input_height, input_width, channels;  // for BMaxPool2d the number of packed words
  int32_t output_height, output_width;
  int32_t filter_height, filter_width, stride_height, stride_width;
  int32_t pad_top, pad_left;
};
void BMaxPool2d(ThreadPool& pool, const MaxPool2dGeometry& geometry, const uint32_t* input, uint32_t* output);

// Operands of a float max pool with an optional scale before it and an optional sum and RELU after it.
struct FloatPool {
  const float* input;
  const float* multiplier;  // per channel, applied before the maximum; null for none
  float floor;              // lower bound of the maximum, and its value if all inputs are NaN
  const float* addend;      // per channel, added to the maximum; null for none
  bool rectify;             // applies RELU to the sum
  float* output;
  int32_t output_channels;  // floats from one output pixel to the next
};
void MaxPool2d(const Isa& isa, ThreadPool& pool, const MaxPool2dGeometry& geometry, const FloatPool& images);
// Averages int8 values, rounded half away from zero, and clamps them. A window has fewer than 2^17 taps.
void AveragePool2d(ThreadPool& pool, const MaxPool2dGeometry& geometry, const int8_t* input, int8_t output_min,
                   int8_t output_max, int8_t* output);

// An operand of an elementwise product: whole images, or one value per channel that is broadcast over images, rows or
// columns.
struct GateOperand {
  const float* values;
  // Floats from one image, row or pixel to the next; 0 along a broadcast dimension.
  int64_t image_stride, row_stride, pixel_stride;
};

// Operands of output = RELU(PRELU(RELU(input * gate), slope) + addend); both RELUs are optional.
struct GatedImages {
  int64_t images, rows, columns;
  int32_t channels;
  GateOperand input, gate;
  bool rectify_product;  // applies RELU to input * gate
  const float* slope;    // per channel, multiplies negative values (PRELU)
  const float* addend;   // has the output's shape and may be the output; null for none
  bool rectify_sum;      // applies RELU to the sum
  float* output;         // may be an operand of the same shape
};
void GateImages(const Isa& isa, ThreadPool& pool, const GatedImages& images);

// Values of the op's `fused_activation_function` option.
enum class Activation : int32_t { kNone = 0, kRelu = 1, kReluN1To1 = 2, kRelu6 = 3 };

enum class Bconv2dOutputType { kFloat32, kInt8, kBitpacked };

// The properties of a convolution that do not change when the input is resized.
struct Bconv2dSpec {
  int32_t channels_in;   // without padding bits, over all groups
  int32_t channels_out;  // a multiple of `groups`
  int32_t groups;        // if above 1, channels_in / groups is a multiple of 32
  int32_t filter_height, filter_width;
  int32_t stride_height, stride_width, dilation_height_factor, dilation_width_factor;
  bool zero_padding;  // true: padded taps add 0 (same-zero); false: padded taps are +1 (same-one)
  Activation activation;
  Bconv2dOutputType output_type;
  const float* post_activation_multiplier;  // [channels_out], or null for 1; read by Create only
  const float* post_activation_bias;        // [channels_out], or null for 0; read by Create only
  const int32_t* output_threshold;          // [channels_out]; kBitpacked only; read by Create only
  float output_scale;                       // kInt8 only
  int32_t output_zero_point;                // kInt8 only
  int64_t output_pixels;                    // per image, 0 if unknown; the fastest ISA may depend on it
};

struct Bconv2dGeometry {
  int32_t batch, input_height, input_width, output_height, output_width;
  int32_t pad_top, pad_left;
};

// The grid of an int8 tensor.
struct Int8Grid {
  float scale;
  int32_t zero_point;
};

struct Int8SumSpec {
  Int8Grid first, second, sum;
  int32_t output_min, output_max;  // the fused activation's bounds
};

// The sum in floating point: the products of both operands, less their zero points, with their scales are added and
// rounded, half away from zero. A few pairs of operands are exceptions, to which one is added. Then the result is
// clamped to [low, high], and the zero point is added.
struct FloatSum {
  static constexpr int32_t kMostExceptions = 3;
  struct Exception {
    int32_t first, second;  // less the zero points
    int32_t difference;     // 1 or -1
  };

  float first_scale, second_scale;
  int32_t second_zero_point, zero_point, low, high;
  int32_t exceptions;
  Exception exception[kMostExceptions];
};

// The sum of two int8 values on grids of their own, with the results of TensorFlow Lite's reference kernel.
class Int8Sum {
 public:
  // False if the grids differ so much that runtimes refuse them.
  bool Set(const Int8SumSpec& spec);
  int8_t operator()(int8_t first, int8_t second) const;
  // Finds floats that give the same result for every pair of values. All pairs near a tie are checked, as only these
  // can differ. False if there are none nearby.
  bool FindFloatSum(FloatSum* found) const;

 private:
  // The least sums of the operands' values that give each result from `low` to `high`, and one above all sums.
  void FindLeastSums(int32_t low, int32_t high, int32_t* least_sums) const;

  Int8SumSpec spec_ = {};
  int32_t multiplier_ = 0, shift_ = 0;          // the scale of the sum of both operands
  int32_t first_[256] = {}, second_[256] = {};  // the operands' values in units of the sum, by level + 128
};

// The epilogue: operations on outputs. Those on floats are in this order; a gate implies slopes and an addend, and
// excludes the RELU.
struct Bconv2dEpilogue {
  const float* gate = nullptr;    // per channel, multiplies the outputs; null for none
  int64_t gate_stride = 0;        // floats from one image's gate to the next; 0 if all images share it
  const float* slope = nullptr;   // per channel, multiplies negative values (PRELU)
  const float* addend = nullptr;  // has the output's shape and may be the output; null for none
  bool rectify_sum = false;       // applies RELU to the sum
  // int8 outputs are the first operand of the sum, this is the second; has the output's shape and may be the output.
  const int8_t* int8_addend = nullptr;
  FloatSum int8_sum = {};
};

// A binary convolution whose weights are repacked for one ISA.
class Bconv2d {
 public:
  // `filter` holds packed OHWI words, PackedWords(channels_in / groups) words a tap, and is not kept. Null if memory
  // ran out.
  static std::unique_ptr<Bconv2d> Create(const Isa& isa, const Bconv2dSpec& spec, const uint32_t* filter);
  virtual ~Bconv2d() = default;

  // The ISA that computes: the one given to Create, or a faster one for this filter.
  virtual const Isa& isa() const = 0;

  // Must be called before Run and after each change of the input's shape. False if memory ran out.
  virtual bool Resize(const Bconv2dGeometry& geometry) = 0;
  // Bytes of scratch memory, aligned to 64, that Run needs with `num_threads` threads and the current geometry.
  virtual size_t WorkspaceBytes(int num_threads) const = 0;
  // Bytes held: repacked weights, channel constants, window offsets and padding corrections.
  virtual size_t OwnedBytes() const = 0;
  // True if Run accepts a gate with the current geometry. If not, GateImages computes the same from the output.
  virtual bool gates() const = 0;
  // True if Run accepts an addend of int8 outputs.
  virtual bool adds_int8() const = 0;
  // Allocates nothing. The result does not depend on the number of threads. An epilogue requires the output's type.
  virtual void Run(ThreadPool& pool, const uint32_t* input, const Bconv2dEpilogue& epilogue, void* output,
                   void* workspace) const = 0;
};

// An int8 convolution of few input channels, such as a network's first one. Its results are those of TensorFlow Lite's
// reference kernel, which are not always those of its faster ones.
struct Int8Conv2dSpec {
  int32_t channels_in, channels_out;
  int32_t filter_height, filter_width, stride_height, stride_width;
  int32_t input_zero_point, output_zero_point;
  int32_t output_min, output_max;  // the fused activation's bounds
  const int8_t* filter;            // OHWI, without -128; read by Create only
  const int32_t* bias;             // [channels_out], or null for 0; read by Create only
  const double* scales;            // [channels_out], of the sums in units of the output; read by Create only
};

class Int8Conv2d {
 public:
  // True if every scale is above 0 and below 1, no weight is -128, and no sum can reach 2^29.
  static bool Supports(const Int8Conv2dSpec& spec);
  // Null if memory ran out. The spec must be supported.
  static std::unique_ptr<Int8Conv2d> Create(const Isa& isa, const Int8Conv2dSpec& spec);
  virtual ~Int8Conv2d() = default;

  // Must be called before Run and after each change of the input's shape. False if the padded image is too large.
  virtual bool Resize(const Bconv2dGeometry& geometry) = 0;
  virtual size_t WorkspaceBytes() const = 0;
  virtual size_t OwnedBytes() const = 0;
  // Allocates nothing. The result does not depend on the number of threads.
  virtual void Run(ThreadPool& pool, const int8_t* input, int8_t* output, void* workspace) const = 0;
};

}  // namespace litebnn
