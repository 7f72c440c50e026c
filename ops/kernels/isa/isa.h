// The file declares the interface of an instruction set (ISA): its functions, and the structures that they take.
//
// Bconv2d lowers a convolution in the same way for every ISA. The packed input is read in place, or it is staged:
// copied into a frame, which has padding around it. The window of an output pixel then consists of a few contiguous
// runs of words, whose offsets are the same for all pixels. Bconv2d::Create repacks the weights into the ISA's layout.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/isa/requantize.h"
#include "kernels/kernels.h"

namespace litebnn {

// An EpilogueKind is the type of outputs together with the operations of their epilogue. There are four kinds for float
// outputs and two for int8 outputs. Packed signs (kBits) have no epilogue.
enum class EpilogueKind { kNone, kAdd, kAddAndRectify, kGateAndAdd, kInt8, kInt8Add, kBits };

// A BconvTask has everything that bconv needs to compute one group of one image. Output pixels are numbered row by row.
struct BconvTask {
  const uint8_t* input;                // window of output pixel 0
  bool is_staged;                      // false: windows are unstaged packed pixels, and bconv stages them itself
  ptrdiff_t row_stride, pixel_stride;  // staged bytes from one output row or pixel to the next
  const ptrdiff_t* run_offsets;        // [runs], bytes from the start of a window
  int32_t runs, run_words;
  int32_t tap_words;  // a run consists of run_words / tap_words taps
  int32_t output_width;

  const uint8_t* weights;  // in the layout of pack_weights
  int32_t depth;           // multiply-adds per output, without padding bits
  int32_t channels;        // output channels of this group
  // `multiplier`, `bias` and `threshold` have one value per channel, padded to a multiple of the ISA's tile_channels.
  const float* multiplier;
  const float* bias;
  const int32_t* threshold;
  int32_t clamp_min, clamp_max;
  int32_t zero_point;
  bool may_tie;  // false if no value is halfway between two int8 outputs; computed for an Isa with `reads_may_tie`
  // The same-zero padding needs corrections: output pixel (y, x) adds corrections[row_correction[y] +
  // column_correction[x] + channel] to depth - 2 * popcount. The pointer is null if no correction is needed.
  const int32_t* corrections;
  const int32_t* row_correction;
  const int32_t* column_correction;

  Bconv2dOutputType output_type;
  void* output;  // pixel 0 of the image
  EpilogueKind epilogue_kind;
  Bconv2dEpilogue epilogue;  // gate and slope start at this group, the addend at this image
  int32_t output_channels;   // over all groups
  int32_t first_channel;     // the first channel of this group in the output

  void* scratch;  // scratch_bytes bytes, aligned to 64
};

// A FloatWindow is the part of a max pool's window that lies inside the input.
struct FloatWindow {
  const float* first;
  int64_t rows, columns;
  int64_t row_stride;  // floats from one row to the next
  int32_t channels;
  const float* multiplier;  // per channel, applied before the maximum; null for none
  const float* addend;      // per channel, added to the maximum; null for none
  bool rectify;             // applies RELU to the sum
};

// An Int8Window is the part of an int8 pool's window that lies inside the input.
struct Int8Window {
  const int8_t* first;
  int64_t rows, columns;
  int64_t row_stride;  // values from one row to the next
  int32_t channels;
  int8_t least, most;  // the result is clamped to these levels
};

// GatedPixels has the operands for consecutive pixels of one row, to compute output = RELU(PRELU(RELU(input * gate),
// slope) + addend).
struct GatedPixels {
  const float *input, *gate;
  int64_t input_stride, gate_stride;  // floats from one pixel to the next; 0 if all pixels share the value
  const float* slope;                 // per channel, multiplies negative values (PRELU)
  const float* addend;                // has the output's shape; null for none
  bool rectify_product, rectify_sum;  // applies RELU to the product or to the sum
  int32_t channels;
  float* output;
};

// An Int8ConvTask has everything that a kernel needs for the int8 convolution of one group of one image. Windows lie in
// a frame, a padded copy of the image. Each value of the frame is an input value plus the kernel's `offset`, and has
// the kernel's `tap_bytes` bytes (see Int8ConvKernel). A row of a window is read in steps of kInt8StepBytes.
struct Int8ConvTask {
  const uint8_t* frame;
  ptrdiff_t frame_row;                 // bytes from one row of a window to the next
  ptrdiff_t row_stride, pixel_stride;  // bytes from one output row or pixel to the next
  int32_t filter_height, steps;

  const uint8_t* weights;  // [vectors of channels][filter rows][steps][taps of a step / lane_taps][channels][lane_taps]
  ptrdiff_t vector_bytes;  // bytes of weights per vector of channels
  // The arrays `bias`, `scales`, `multiplier`, `shift`, `float_multiplier` and `nudge` have one value per channel, and
  // are padded to whole vectors of channels.
  const int32_t* bias;
  const FixedPoint* scales;
  const int32_t *multiplier, *shift;      // the members of `scales`
  const float *float_multiplier, *nudge;  // the members of FloatScale
  int32_t zero_point, output_min, output_max;
  int32_t channels, output_width;
  int32_t output_channels;  // over all groups
  int8_t* output;           // the group's first channel of pixel 0
};

constexpr int32_t kInt8StepBytes = 4;

// An Int8ConvKernel is a kernel of int8 convolutions, and the data layout that the kernel requires.
struct Int8ConvKernel {
  int32_t vector_channels;
  int32_t lane_taps;  // consecutive taps of one channel in the weights
  int32_t tap_bytes;  // bytes of a value in the frame and of a weight: 1 or 2
  int32_t offset;     // added to every value in the frame
  double macs_per_cycle;
  // The function computes rows [begin, end) of the convolution's output.
  void (*rows)(const Int8ConvTask& task, int64_t begin, int64_t end);
};

// The sum of this many int8 values, plus half of their number, fits in 16 bits.
constexpr int32_t kMostAveragedTaps = 255;

struct Isa {
  const char* name;
  bool (*available)();

  // The function packs the signs of values. If `channels` is not a multiple of 32, the last word of each row is padded
  // with 0 bits.
  void (*pack_float32_signs)(const float* input, int64_t rows, int32_t channels, uint32_t* output);
  void (*pack_int8_signs)(const int8_t* input, int64_t rows, int32_t channels, int32_t zero_point, uint32_t* output);
  // The function packs comparisons with one threshold per channel, as PackInt8Comparisons in kernels.h does.
  void (*pack_int8_comparisons)(const int8_t* input, int64_t rows, int32_t channels, const int8_t* thresholds,
                                const uint32_t* inverted, uint32_t* output, int64_t output_words);
  // The function packs the signs of input * multiplier + addend; `multiplier` and `addend` have one value per channel.
  // Output rows are `output_words` words apart.
  void (*pack_affine_signs)(const float* input, const float* multiplier, const float* addend, int64_t rows,
                            int32_t channels, uint32_t* output, int64_t output_words);
  // The function computes one window of a max pool for all channels. The result is at least `floor`, and NaNs in the
  // window are ignored.
  void (*max_window)(const FloatWindow& window, float floor, float* output);
  // The function computes one window of an int8 max pool for all channels.
  void (*max_int8_window)(const Int8Window& window, int8_t* output);
  // The function computes one window of an int8 average pool for all channels. The window has at most
  // kMostAveragedTaps taps. If the pointer is null, AveragePool2d uses plain loops, which compilers vectorize.
  void (*average_int8_window)(const Int8Window& window, int8_t* output) = nullptr;
  void (*gate_pixels)(const GatedPixels& pixels, int64_t count);

  int32_t tile_pixels, tile_channels;
  // The binary multiply-adds per cycle of bconv's inner loop, on a core for which the ISA is made. The number is used
  // to estimate the costs of loops that threads may share.
  double macs_per_cycle;
  // staged_bytes returns the bytes of a tap after staging, and stage converts `taps` taps from words to this form. Both
  // functions are null if the kernels read the words as they are. A word of zeros must be staged as bytes of zeros.
  size_t (*staged_bytes)(int32_t tap_words) = nullptr;
  void (*stage)(const uint32_t* words, int64_t taps, int32_t tap_words, uint8_t* staged) = nullptr;
  // True if bconv itself stages (converts) the input words of convolutions whose windows are single pixels. Each pixel
  // is then in at most one window. Therefore the caller makes no frame, which is a padded and staged copy of the image.
  bool stages_pixels = false;
  // pack_weights repacks the filter of one group, which has `channels` rows of taps * tap_words words. The caller
  // fills `packed` with zeros before the call.
  size_t (*packed_weights_bytes)(int32_t channels, int32_t taps, int32_t tap_words);
  void (*pack_weights)(const uint32_t* filter, int32_t channels, int32_t taps, int32_t tap_words, uint8_t* packed);
  size_t (*scratch_bytes)(int32_t words) = nullptr;  // null if none is needed
  // The function computes output pixels [pixel_begin, pixel_end) of the group's channels [channel_begin, channel_end).
  // channel_begin is a multiple of tile_channels.
  void (*bconv)(const BconvTask& task, int64_t pixel_begin, int64_t pixel_end, int32_t channel_begin,
                int32_t channel_end);
  // The flag `gates` is true if bconv supports an epilogue with a gate. The flag `adds_int8` is true if bconv supports
  // an epilogue that adds to int8 outputs.
  bool gates = true, adds_int8 = true;
  // True if bconv reads the task's flag `may_tie`. Computing the flag takes about a microsecond for each channel.
  bool reads_may_tie = false;
  // The function returns another ISA that computes this filter faster than this ISA does, or null if there is none. The
  // function is not called if the user selected the ISA by name.
  const Isa* (*better)(const Bconv2dSpec& spec) = nullptr;
  // The function returns the kernel of int8 convolutions, which depends on the CPU's dot product instructions.
  const Int8ConvKernel& (*int8_conv)();
  // Two ISAs may use the same instructions, with loops for different CPUs. This function returns true if this ISA is
  // the faster one on this CPU. The pointer is null if no other ISA uses the same instructions.
  bool (*suits)() = nullptr;
};

// The kernels of int8 convolutions. Each kernel runs only on CPUs with the instructions in its name.
extern const Int8ConvKernel kPortableInt8Conv;
extern const Int8ConvKernel kAvx512VnniInt8Conv;
extern const Int8ConvKernel kAvxVnniInt8Conv;
extern const Int8ConvKernel kAvx2Int8Conv;
extern const Int8ConvKernel kNeon64Int8Conv;
extern const Int8ConvKernel kNeon64DotInt8Conv;
extern const Int8ConvKernel kNeon32Int8Conv;
// Each function returns the fastest int8 kernel for this CPU, among the kernels for the ISA's instructions and their
// extensions.
const Int8ConvKernel& PortableInt8Conv();
const Int8ConvKernel& Avx512Int8Conv();
const Int8ConvKernel& Avx2Int8Conv();
const Int8ConvKernel& Neon64Int8Conv();
const Int8ConvKernel& Neon32Int8Conv();

// The average_int8_window of AVX2, which the ISAs of AVX-512 have too.
void Avx2AverageInt8Window(const Int8Window& window, int8_t* output);

// Functions of avx512 that avx512_vbmi has too.
void Avx512PackFloat32Signs(const float* input, int64_t rows, int32_t channels, uint32_t* output);
void Avx512PackInt8Signs(const int8_t* input, int64_t rows, int32_t channels, int32_t zero_point, uint32_t* output);
void Avx512PackInt8Comparisons(const int8_t* input, int64_t rows, int32_t channels, const int8_t* thresholds,
                               const uint32_t* inverted, uint32_t* output, int64_t output_words);
void Avx512PackAffineSigns(const float* input, const float* multiplier, const float* addend, int64_t rows,
                           int32_t channels, uint32_t* output, int64_t output_words);
void Avx512MaxWindow(const FloatWindow& window, float floor, float* output);
void Avx512MaxInt8Window(const Int8Window& window, int8_t* output);
void Avx512GatePixels(const GatedPixels& pixels, int64_t count);

// All ISAs. An ISA is defined only in builds for its processor architecture.
extern const Isa kPortableIsa;
extern const Isa kAvx512VbmiIsa;
extern const Isa kAvx512Isa;
extern const Isa kAvx2Isa;
extern const Isa kNeon64Isa;
extern const Isa kNeon64TblIsa;
extern const Isa kNeon64InOrderIsa;
extern const Isa kSme2Isa;
extern const Isa kNeon32Isa;

}  // namespace litebnn
