// The interface of the compute kernels: plain pointers and shapes, no TensorFlow Lite.
//
// Callers check that every size is positive and that no product of sizes overflows. No function throws; a function that
// runs out of memory returns null or false. Signs are packed as docs/ops.md describes: a 1 bit stands for -1, channel 0
// is the least significant bit, and padding bits are 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace litebnn {

constexpr int32_t kBitsPerWord = 32;

// The function is static, because files that are compiled for different ISAs must not share symbols.
static constexpr int32_t PackedWords(int32_t channels) {
  return channels / kBitsPerWord + (channels % kBitsPerWord != 0 ? 1 : 0);
}

class ThreadPool;

// An instruction set (ISA) and its kernels. The type is defined in kernels/isa/isa.h and opaque to users of this
// header.
struct Isa;

// Returns the ISA with the name `isa` ("portable", "avx2", ...), which then computes every layer itself. If `isa` is
// null or empty, the environment variable LITEBNN_ISA names the ISA. Without either name, returns the fastest ISA of
// this CPU, which may delegate a layer to another ISA that is faster for the layer's shape. Returns null if the name is
// unknown or this CPU cannot run that ISA.
const Isa* FindIsa(const char* isa);
const char* IsaName(const Isa& isa);
// Names of the ISAs that this CPU can run, separated by ", ". The first one is the best, which runs by default.
const char* AvailableIsas();

// Packs the signs of floats. Each of the `rows` rows has `channels` values, which become PackedWords(channels) words.
void PackFloat32Signs(const Isa& isa, ThreadPool& pool, const float* input, int64_t rows, int32_t channels,
                      uint32_t* output);
void PackInt8Signs(const Isa& isa, ThreadPool& pool, const int8_t* input, int64_t rows, int32_t channels,
                   int32_t zero_point, uint32_t* output);
void PackBoolSigns(const Isa& isa, ThreadPool& pool, const bool* input, int64_t rows, int32_t channels,
                   uint32_t* output);
// Packs the signs of input * multiplier + addend; `multiplier` and `addend` have one value per channel. The product and
// the sum are rounded separately. Output rows are `output_words` words apart.
void PackAffineSigns(const Isa& isa, ThreadPool& pool, const float* input, const float* multiplier, const float* addend,
                     int64_t rows, int32_t channels, uint32_t* output, int64_t output_words);

// Packs comparisons of int8 values. A value below its channel's threshold becomes a 1 bit, another value a 0 bit. The
// output bits of channels whose bit in `inverted` is 1 are then inverted. `inverted` has the layout of one output row,
// and 0 in its padding bits. Output rows are `output_words` words apart.
void PackInt8Comparisons(const Isa& isa, ThreadPool& pool, const int8_t* input, int64_t rows, int32_t channels,
                         const int8_t* thresholds, const uint32_t* inverted, uint32_t* output, int64_t output_words);

// Unpacks signs to float or int8_t: a 0 bit becomes `plus_one`, a 1 bit becomes `minus_one`.
template <typename T>
void UnpackSigns(ThreadPool& pool, const uint32_t* input, int64_t rows, int32_t channels, T plus_one, T minus_one,
                 T* output);

struct MaxPool2dGeometry {
  int32_t batch, input_height, input_width, channels;  // for BMaxPool2d `channels` is packed words of a pixel
  int32_t output_height, output_width;
  int32_t filter_height, filter_width, stride_height, stride_width;
  int32_t pad_top, pad_left;
};
void BMaxPool2d(ThreadPool& pool, const MaxPool2dGeometry& geometry, const uint32_t* input, uint32_t* output);

// The operands of a max pool of floats. Optionally, a multiplier for each channel is applied before the maximum, and a
// constant for each channel is added after it, followed by RELU.
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
// Computes the largest int8 value of each window, and clamps it to [output_min, output_max].
void MaxPool2d(const Isa& isa, ThreadPool& pool, const MaxPool2dGeometry& geometry, const int8_t* input,
               int8_t output_min, int8_t output_max, int8_t* output);
// Averages the int8 values of each window, rounds halves away from zero, and clamps to [output_min, output_max]. A
// window has fewer than 2^17 taps.
void AveragePool2d(const Isa& isa, ThreadPool& pool, const MaxPool2dGeometry& geometry, const int8_t* input,
                   int8_t output_min, int8_t output_max, int8_t* output);

// The operands of an average pool of floats after a batch norm: input * multiplier + addend, where the product and the
// sum are rounded separately.
struct AveragedImages {
  const float *input, *multiplier, *addend;  // the latter two have one value per channel
  uint32_t* signs;                           // the packed signs of the pool's input; null if they are not needed
  float* output;
  float* row_sums;  // memory for one pixel per row of the input
};
// The order of each sum is fixed: first the pixels of each row, then the rows.
void AveragePool2d(const Isa& isa, ThreadPool& pool, const MaxPool2dGeometry& geometry, const AveragedImages& images);

// A factor of a product of images. It may be smaller than an image: its values are then broadcast over images, rows or
// columns.
struct GateOperand {
  const float* values;
  // The distance, in floats, from one image, row or pixel to the next; 0 along a dimension over which the factor is
  // broadcast.
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
  int32_t channels_in;   // over all groups, without padding bits
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
  int64_t output_pixels;                    // per image, 0 if unknown; affects which ISA is the fastest
};

struct Bconv2dGeometry {
  int32_t batch, input_height, input_width, output_height, output_width;
  int32_t pad_top, pad_left;
};

// The quantization of an int8 tensor: the level n stands for scale * (n - zero_point).
struct Int8Grid {
  float scale;
  int32_t zero_point;
};

struct Int8SumSpec {
  Int8Grid first, second, sum;
  int32_t output_min, output_max;  // the fused activation's bounds
};

// The sum of two int8 values, computed in float32. Each operand, less its zero point, is multiplied by its scale; both
// products are added and rounded, halves away from zero. For a few pairs of operands, the exceptions, `difference` is
// then added. The result is clamped to [low, high], and the zero point is added.
struct FloatSum {
  static constexpr int32_t kMostExceptions = 3;
  struct Exception {
    int32_t first, second;  // the operands, less their zero points
    int32_t difference;     // 1 or -1
  };

  float first_scale, second_scale;
  int32_t second_zero_point, zero_point, low, high;
  // True if two fused multiply-adds, whose result is rounded with halves to even, give the same sum in less time. The
  // first multiply-add computes second * second_scale - second_zero_point * second_scale, where `second` is the second
  // operand, with its zero point. The next multiply-add adds the product of the first operand, without its zero point,
  // and first_scale.
  bool may_fuse;
  int32_t exceptions;
  Exception exception[kMostExceptions];
};

// The sum of two int8 values, each with its own quantization. The results equal those of TensorFlow Lite's reference
// kernel.
class Int8Sum {
 public:
  // Returns false if the scales differ so much that runtimes refuse the op.
  bool Set(const Int8SumSpec& spec);
  int8_t operator()(int8_t first, int8_t second) const;
  // Finds a FloatSum that gives the same result as this Int8Sum for every pair of values. Pairs for which the float sum
  // differs are listed in the FloatSum's `exception`. Only pairs whose sum is nearly halfway between two integers can
  // differ, so only such pairs are checked. Returns false if no such FloatSum is found.
  bool FindFloatSum(FloatSum* found) const;

 private:
  // Sets least_sums[i] to the least sum of two scaled operands (`first_` plus `second_`) whose result, without the zero
  // point, is at least low + i. The last element, after the one for `high`, is larger than any sum.
  void FindLeastSums(int32_t low, int32_t high, int32_t* least_sums) const;

  Int8SumSpec spec_ = {};
  int32_t multiplier_ = 0, shift_ = 0;          // fixed-point scale from operand values to output levels
  int32_t first_[256] = {}, second_[256] = {};  // operand values on a common scale, by level + 128
};

// The product of two int8 values, each with its own quantization. The results equal those of TensorFlow Lite's
// reference kernel.
class Int8Product {
 public:
  // Returns false unless the product of the two operands' scales is below the scale of the result.
  bool Set(const Int8Grid& first, const Int8Grid& second, const Int8Grid& product);
  int8_t operator()(int8_t first, int8_t second) const;

 private:
  int32_t first_zero_point_ = 0, second_zero_point_ = 0, zero_point_ = 0;
  int32_t multiplier_ = 0, shift_ = 0;  // fixed-point scale from products of operands to output levels
};

// The epilogue: operations that a convolution applies to its outputs. Operations on floats are applied in the order of
// the members. A gate (a factor for each channel) requires slopes and an addend, and excludes `rectify_sum`.
struct Bconv2dEpilogue {
  const float* gate = nullptr;    // per channel, multiplies the outputs; null for none
  int64_t gate_stride = 0;        // floats from one image's gate to the next; 0 if all images share it
  const float* slope = nullptr;   // per channel, multiplies negative values (PRELU)
  const float* addend = nullptr;  // has the output's shape and may be the output; null for none
  bool rectify_sum = false;       // applies RELU to the sum
  // The second operand of the int8 sum, whose first operand is the convolution's output; null for none. It has the
  // output's shape and may be the output.
  const int8_t* int8_addend = nullptr;
  FloatSum int8_sum = {};
};

// A binary convolution whose weights are repacked for one ISA.
class Bconv2d {
 public:
  // The array `filter` holds packed words in OHWI order, PackedWords(channels_in / groups) words per tap. The caller
  // may free the filter after the call. Returns null if memory ran out.
  static std::unique_ptr<Bconv2d> Create(const Isa& isa, const Bconv2dSpec& spec, const uint32_t* filter);
  virtual ~Bconv2d() = default;

  // The ISA that computes the convolution: the one given to Create, or one that is faster for this filter.
  virtual const Isa& isa() const = 0;

  // Resize must be called before Run, and again after each change of the input's shape. Returns false if memory ran
  // out.
  virtual bool Resize(const Bconv2dGeometry& geometry) = 0;
  // Bytes of scratch memory, aligned to 64, that Run needs with `num_threads` threads and the current geometry.
  virtual size_t WorkspaceBytes(int num_threads) const = 0;
  // Bytes of memory that this object owns: repacked weights, channel constants, window offsets and padding corrections.
  virtual size_t OwnedBytes() const = 0;
  // True if Run can multiply outputs by the epilogue's gate (a factor for each channel) for images of the current size.
  // If it is false, callers run without a gate and then call GateImages on the output, with the same result.
  virtual bool gates() const = 0;
  // True if Run accepts `int8_addend` in the epilogue.
  virtual bool adds_int8() const = 0;
  // Run allocates no memory. The result does not depend on the number of threads. The epilogue's operations must be for
  // the output's type, float32 or int8.
  virtual void Run(ThreadPool& pool, const uint32_t* input, const Bconv2dEpilogue& epilogue, void* output,
                   void* workspace) const = 0;
};

// An int8 convolution with few input channels in each group, such as a network's first layer. The results equal those
// of TensorFlow Lite's reference kernel, from which TensorFlow Lite's optimized kernels may differ.
struct Int8Conv2dSpec {
  int32_t channels_in, channels_out;  // over all groups
  int32_t groups;                     // divides both
  int32_t filter_height, filter_width, stride_height, stride_width;
  int32_t input_zero_point, output_zero_point;
  int32_t output_min, output_max;  // the fused activation's bounds
  const int8_t* filter;            // OHWI weights, none of them -128; read by Create only
  const int32_t* bias;             // [channels_out], or null for 0; read by Create only
  const double* scales;            // [channels_out], factors from sums to output levels; read by Create only
};

class Int8Conv2d {
 public:
  // True if every scale is above 0 and below 1, no weight is -128, and no sum can reach 2^29.
  static bool Supports(const Int8Conv2dSpec& spec);
  // Makes the convolution, or returns null if memory ran out. Supports(spec) must be true.
  static std::unique_ptr<Int8Conv2d> Create(const Isa& isa, const Int8Conv2dSpec& spec);
  virtual ~Int8Conv2d() = default;

  // Resize must be called before Run, and again after each change of the input's shape. Returns false if the padded
  // image is too large.
  virtual bool Resize(const Bconv2dGeometry& geometry) = 0;
  virtual size_t WorkspaceBytes() const = 0;
  virtual size_t OwnedBytes() const = 0;
  // Run allocates no memory. The result does not depend on the number of threads.
  virtual void Run(ThreadPool& pool, const int8_t* input, int8_t* output, void* workspace) const = 0;
};

}  // namespace litebnn
