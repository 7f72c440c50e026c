// What an instruction set (ISA) provides: functions, and the data they work on.
//
// A convolution is lowered the same way for every ISA. The packed input is staged: copied into a frame that holds the
// padding too (or used in place where there is none), so that the window of an output pixel is a few contiguous runs of
// words at offsets that are the same for every pixel. Weights are repacked at Create into the ISA's own order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernels.h"

namespace litebnn {

// How float32 outputs are finished; kNotFloat where they are of another type.
enum class FinishKind { kNone, kAdd, kAddAndRectify, kGateAndAdd, kNotFloat };

// One image, one group, ready to compute. Pixels are numbered row by row.
struct BconvTask {
  const uint8_t* input;                // window of output pixel 0
  bool is_staged;                      // otherwise a window is a pixel of packed words, which bconv stages
  ptrdiff_t row_stride, pixel_stride;  // staged bytes from a window to the one of the output pixel below or beside it
  const ptrdiff_t* run_offsets;        // [runs], bytes from the start of a window
  int32_t runs, run_words;
  int32_t tap_words;  // a run has run_words / tap_words taps
  int32_t output_width;

  const uint8_t* weights;  // as pack_weights has left them
  int32_t depth;           // K: real channels times taps
  int32_t channels;        // of this group
  // Each is padded to a multiple of the ISA's tile_channels.
  const float* multiplier;
  const float* bias;
  const int32_t* threshold;
  int32_t clamp_min, clamp_max;
  int32_t zero_point;
  // Same-zero padding: output pixel (y, x) adds corrections[row_correction[y] + column_correction[x] + channel] to
  // K - 2 * popcount sum. Null where every tap counts fully.
  const int32_t* corrections;
  const int32_t* row_correction;
  const int32_t* column_correction;

  Bconv2dOutputType output_type;
  void* output;  // the image's pixel 0
  FinishKind finish_kind;
  Bconv2dFinish finish;     // gate and slope of the group's channels, and the image's addend
  int32_t output_channels;  // over all groups
  int32_t first_channel;    // of this group among them

  void* scratch;  // scratch_bytes, aligned to 64
};

// What a pixel of a max pool is the maximum of.
struct FloatWindow {
  const float* first;
  int64_t rows, columns;
  int64_t row_stride;  // floats from a row of it to the next
  int32_t channels;
  const float* multiplier;  // of each channel's values before they are compared; null where they stay as they are
  const float* addend;      // to each channel's largest value; null where that stays as it is
  bool rectify;             // the sum's negative values become 0
};

// Pixels of one row that are multiplied by a gate, and what follows.
struct GatedPixels {
  const float *input, *gate;
  int64_t input_stride, gate_stride;  // floats from what a pixel reads to what the next one does: 0 where that is one
  const float* slope;                 // of each channel: what is below 0 is multiplied by it
  const float* addend;                // has the output's shape; null where there is none
  bool rectify_product, rectify_sum;  // negative values become 0
  int32_t channels;
  float* output;
};

struct Isa {
  const char* name;
  bool (*available)();

  // `count` values become count / 32 words, or one row of `channels` values a time where those leave a word part full.
  void (*pack_float32_signs)(const float* input, int64_t rows, int32_t channels, uint32_t* output);
  void (*pack_int8_signs)(const int8_t* input, int64_t rows, int32_t channels, int32_t zero_point, uint32_t* output);
  // The signs of input * multiplier + addend, row by row; `multiplier` and `addend` have `channels` values. A row of
  // the output is `output_words` behind the one before.
  void (*pack_affine_signs)(const float* input, const float* multiplier, const float* addend, int64_t rows,
                            int32_t channels, uint32_t* output, int64_t output_words);
  // output[channels]: the largest of each channel's values that is above `floor`, or `floor`.
  void (*max_window)(const FloatWindow& window, float floor, float* output);
  void (*gate_pixels)(const GatedPixels& pixels, int64_t count);

  int32_t tile_pixels, tile_channels;
  // Binary multiply-adds that bconv's inner loop does in a cycle, on a core that it is for: threads share work by it.
  double macs_per_cycle;
  // The size of a staged tap, and how `taps` of them become staged ones: null where words stay as they are. What is
  // staged of zeros is zeros.
  size_t (*staged_bytes)(int32_t tap_words) = nullptr;
  void (*stage)(const uint32_t* words, int64_t taps, int32_t tap_words, uint8_t* staged) = nullptr;
  // Whether bconv stages windows that are pixels by itself, when it needs them: nothing of those is read twice.
  bool stages_pixels = false;
  // Filters of one group: `channels` rows of taps * tap_words words. `packed` holds zeros.
  size_t (*packed_weights_bytes)(int32_t channels, int32_t taps, int32_t tap_words);
  void (*pack_weights)(const uint32_t* filter, int32_t channels, int32_t taps, int32_t tap_words, uint8_t* packed);
  size_t (*scratch_bytes)(int32_t words) = nullptr;  // null where none is needed
  // Output pixels [pixel_begin, pixel_end), channels [channel_begin, channel_end) of the group; channel_begin is a
  // multiple of tile_channels.
  void (*bconv)(const BconvTask& task, int64_t pixel_begin, int64_t pixel_end, int32_t channel_begin,
                int32_t channel_end);
  // Whether bconv finishes outputs with a gate.
  bool gates = true;
  // The ISA that is better at a filter, null where this one is. Nobody is asked where an ISA is forced by its name.
  const Isa* (*better)(const Bconv2dSpec& spec) = nullptr;
  // Whether it is the one for this CPU among those of the same instructions; null where it is alone.
  bool (*suits)() = nullptr;
};

// Each is there on the CPUs that may have its instructions.
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
