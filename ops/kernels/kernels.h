// The interface of the compute kernels: plain pointers and shapes, no TensorFlow Lite.
//
// Callers validate: every size here is positive and every product of sizes has been checked to fit. Nothing in this
// header throws; what can run out of memory says so by its result. Bits are as in docs/ops.md: bit 1 means -1,
// channel 0 in the least significant bit, padding bits 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace litebnn {

constexpr int32_t kBitsPerWord = 32;

// Static, as files compiled for an ISA must share nothing with others.
static constexpr int32_t PackedWords(int32_t channels) {
  return channels / kBitsPerWord + (channels % kBitsPerWord != 0 ? 1 : 0);
}

class ThreadPool;

// An instruction set; defined in kernels/isa/isa.h, opaque to users of this header.
struct Isa;

// The ISA named `isa` ("portable", "avx2", ...), which then computes everything, or where `isa` is null or empty and
// the environment variable LITEBNN_ISA is unset the best one for this CPU, which leaves to others what they are better
// at. Null where the name is unknown or this CPU cannot run that ISA.
const Isa* FindIsa(const char* isa);
const char* IsaName(const Isa& isa);
// Names of the ISAs that this CPU can run, faster ones first, separated by ", ".
const char* AvailableIsas();

// Packs signs: `rows` rows of `channels` values become rows of PackedWords(channels) words.
void PackFloat32Signs(const Isa& isa, ThreadPool& pool, const float* input, int64_t rows, int32_t channels,
                      uint32_t* output);
void PackInt8Signs(const Isa& isa, ThreadPool& pool, const int8_t* input, int64_t rows, int32_t channels,
                   int32_t zero_point, uint32_t* output);
void PackBoolSigns(const Isa& isa, ThreadPool& pool, const bool* input, int64_t rows, int32_t channels,
                   uint32_t* output);
// Packs the signs of input * multiplier + addend, of which there is one for each channel. Both operations round. A row
// of the output is `output_words` behind the one before.
void PackAffineSigns(const Isa& isa, ThreadPool& pool, const float* input, const float* multiplier, const float* addend,
                     int64_t rows, int32_t channels, uint32_t* output, int64_t output_words);

// Unpacks signs to float, int8_t or bool: bit 0 becomes `plus_one`, bit 1 becomes `minus_one`.
template <typename T>
void UnpackSigns(ThreadPool& pool, const uint32_t* input, int64_t rows, int32_t channels, T plus_one, T minus_one,
                 T* output);

struct MaxPool2dGeometry {
  int32_t batch, input_height, input_width, channels;  // or packed words in place of channels
  int32_t output_height, output_width;
  int32_t filter_height, filter_width, stride_height, stride_width;
  int32_t pad_top, pad_left;
};
void BMaxPool2d(ThreadPool& pool, const MaxPool2dGeometry& geometry, const uint32_t* input, uint32_t* output);

// What a max pool of floats reads and writes.
struct FloatPool {
  const float* input;
  const float* multiplier;  // of each channel's values before they are compared; null where they stay as they are
  float floor;              // the largest value is at least this; a NaN is passed over
  const float* addend;      // to each channel's largest value; null where that stays as it is
  bool rectify;             // the sum's negative values become 0
  float* output;
  int32_t output_channels;  // floats from a pixel of the output to the next
};
void MaxPool2d(const Isa& isa, ThreadPool& pool, const MaxPool2dGeometry& geometry, const FloatPool& images);

// Images, or what is multiplied with each pixel of one, or of a row or column of one.
struct GateOperand {
  const float* values;
  // Floats from an image, row or pixel to the next; 0 where there is one for all.
  int64_t image_stride, row_stride, pixel_stride;
};

// What a gate reads and writes.
struct GatedImages {
  int64_t images, rows, columns;
  int32_t channels;
  GateOperand input, gate;
  bool rectify_product;  // the negative values of their product become 0
  const float* slope;    // of each channel: what is below 0 then is multiplied by it
  const float* addend;   // has the output's shape; null where there is none. The output may overwrite it
  bool rectify_sum;      // the sum's negative values become 0
  float* output;         // may overwrite an operand that has its shape
};
void GateImages(const Isa& isa, ThreadPool& pool, const GatedImages& images);

// The values are those of the op's `fused_activation_function` option.
enum class Activation : int32_t { kNone = 0, kRelu = 1, kReluN1To1 = 2, kRelu6 = 3 };

enum class Bconv2dOutputType { kFloat32, kInt8, kBitpacked };

// What does not change when the input is resized.
struct Bconv2dSpec {
  int32_t channels_in;   // real channels of the input, over all groups
  int32_t channels_out;  // a multiple of groups
  int32_t groups;        // above 1: channels_in / groups is a multiple of 32
  int32_t filter_height, filter_width;
  int32_t stride_height, stride_width, dilation_height_factor, dilation_width_factor;
  bool zero_padding;  // a tap outside the input adds nothing (same-zero); otherwise it is +1 (same-one)
  Activation activation;
  Bconv2dOutputType output_type;
  const float* post_activation_multiplier;  // [channels_out], or null for 1; read during Create only
  const float* post_activation_bias;        // [channels_out], or null for 0; read during Create only
  const int32_t* output_threshold;          // [channels_out]; kBitpacked only; read during Create only
  float output_scale;                       // kInt8 only
  int32_t output_zero_point;                // kInt8 only
  int64_t output_pixels;                    // of an image, 0 where not known: which ISA is better may hang on it
};

struct Bconv2dGeometry {
  int32_t batch, input_height, input_width, output_height, output_width;
  int32_t pad_top, pad_left;
};

// What is done to float outputs, in this order. Where there is a gate, there are slopes and an addend, and no RELU.
struct Bconv2dFinish {
  const float* gate = nullptr;    // a value for each channel, which they are multiplied by; null where there is none
  int64_t gate_stride = 0;        // floats from an image's gate to the next one's; 0 where there is one for all
  const float* slope = nullptr;   // of each channel: what is below 0 then is multiplied by it
  const float* addend = nullptr;  // has the output's shape; null where there is none. The output may overwrite it
  bool rectify_sum = false;       // the sum's negative values become 0
};

// A binary convolution with its weights repacked for one ISA.
class Bconv2d {
 public:
  // `filter`: packed OHWI words, PackedWords(channels_in / groups) words a tap. It is not kept.
  // Null where memory ran out.
  static std::unique_ptr<Bconv2d> Create(const Isa& isa, const Bconv2dSpec& spec, const uint32_t* filter);
  virtual ~Bconv2d() = default;

  // The one that computes: what Create was given, or one that it is better to leave this filter to.
  virtual const Isa& isa() const = 0;

  // To be called before Run and whenever the input's shape has changed. False where memory ran out.
  virtual bool Resize(const Bconv2dGeometry& geometry) = 0;
  // Bytes of scratch, aligned to 64, that Run needs with that many threads, for the geometry set last.
  virtual size_t WorkspaceBytes(int num_threads) const = 0;
  // Bytes held: repacked weights, the channels' constants, the windows' offsets and the corrections of padding.
  virtual size_t OwnedBytes() const = 0;
  // Whether Run takes a gate, for the geometry set last; where it does not, GateImages does the same with its output.
  virtual bool gates() const = 0;
  // Allocates nothing. The result does not depend on the number of threads in `pool`. There is something to finish with
  // kFloat32 only.
  virtual void Run(ThreadPool& pool, const uint32_t* input, const Bconv2dFinish& finish, void* output,
                   void* workspace) const = 0;
};

}  // namespace litebnn
