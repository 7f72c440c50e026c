/* Convolution and dense layers: gathers windows, lets the kernel count, and writes outputs. */
#include "kernel.h"

/* ---- Windows ---- */

static int is_inside(int32_t at, int32_t size) { return (uint32_t)at < (uint32_t)size; }

static uint32_t* copy(const uint32_t* from, int32_t words, uint32_t* to) {
  for (const uint32_t* const end = from + words; from != end;) *to++ = *from++;
  return to;
}

static uint32_t* zero(int32_t words, uint32_t* to) {
  for (uint32_t* const end = to + words; to != end;) *to++ = 0;
  return to;
}

/* Taps of whole words. Taps that are neighbours in memory are copied at once. */
static uint32_t* gather_words(const litebnn_bconv2d* l, const uint32_t* row, int32_t column, uint32_t* to) {
  const int32_t pixel_words = LITEBNN_WORDS(l->channels_in), tap_words = l->tap_bits / 32;
  if (l->dilation_width == 1 && tap_words == pixel_words) {
    int32_t first = column, last = column + l->filter_width;
    if (first < 0) {
      const int32_t left = last < 0 ? l->filter_width : -first;
      to = zero(left * tap_words, to);
      first = 0;
    }
    if (last > l->input_width) last = l->input_width;
    if (last > first) to = copy(row + first * pixel_words, (last - first) * tap_words, to);
    const int32_t right = column + l->filter_width - (last > first ? last : first);
    return right > 0 ? zero(right * tap_words, to) : to;
  }
  for (int32_t x = 0; x < l->filter_width; ++x, column += l->dilation_width) {
    to = is_inside(column, l->input_width) ? copy(row + column * pixel_words, tap_words, to) : zero(tap_words, to);
  }
  return to;
}

/* Bits that are appended at bit `filled` of `word`. */
typedef struct {
  uint32_t* to;
  uint32_t word;
  int32_t filled;
} Bits;

static void append(Bits* bits, uint32_t word, int32_t count) {
  bits->word |= word << bits->filled;
  bits->filled += count;
  if (bits->filled >= 32) {
    *bits->to++ = bits->word;
    bits->filled -= 32;
    /* In two steps, because a shift by 32 is undefined. */
    bits->word = bits->filled ? word >> (count - bits->filled) : 0;
  }
}

static void gather_bits(const litebnn_bconv2d* l, const uint32_t* row, int32_t column, Bits* bits) {
  const int32_t pixel_words = LITEBNN_WORDS(l->channels_in);
  for (int32_t x = 0; x < l->filter_width; ++x, column += l->dilation_width) {
    const uint32_t* from = row && is_inside(column, l->input_width) ? row + column * pixel_words : 0;
    for (int32_t left = l->tap_bits; left > 0; left -= 32) {
      append(bits, from ? *from++ : 0, left < 32 ? left : 32);
    }
  }
}

/* `input` begins at the group's first word of a pixel. */
static void gather(const litebnn_bconv2d* l, const uint32_t* input, int32_t y, int32_t x, uint32_t* window) {
  const int32_t row_words = l->input_width * LITEBNN_WORDS(l->channels_in), is_whole = l->tap_bits % 32 == 0;
  const int32_t column = x * l->stride_width - l->pad_left;
  int32_t line = y * l->stride_height - l->pad_top;
  Bits bits = {window, 0, 0};
  for (int32_t i = 0; i < l->filter_height; ++i, line += l->dilation_height) {
    const uint32_t* const row = is_inside(line, l->input_height) ? input + line * row_words : 0;
    if (!is_whole) {
      gather_bits(l, row, column, &bits);
    } else if (row) {
      bits.to = gather_words(l, row, column, bits.to);
    } else {
      bits.to = zero(l->filter_width * (l->tap_bits / 32), bits.to);
    }
  }
  if (bits.filled) *bits.to++ = bits.word;
  zero((int32_t)(window + l->window_words - bits.to), bits.to);
}

/* ---- Outputs ---- */

/* The position of a group's outputs at a pixel. */
typedef struct {
  int32_t pixel, first, channels, depth;
} Place;

/* Prevents that a product and a sum are rounded once, which compilers may do for CPUs that can. */
#if defined(__FP_FAST_FMAF) || defined(__FP_FAST_FMA)
typedef volatile float Product;
#else
typedef float Product;
#endif

static inline float value_of(const litebnn_bconv2d* l, int32_t depth, int32_t count, int32_t channel) {
  int32_t dot = depth - 2 * count;
  if (dot < l->clamp_min) dot = l->clamp_min;
  if (dot > l->clamp_max) dot = l->clamp_max;
  const Product product = (float)dot * l->multiplier[channel];
  return product + l->bias[channel];
}

static void write_floats(const litebnn_bconv2d* l, const Place* at, const int32_t* counts, void* output) {
  float* const to = (float*)output + at->pixel * l->channels_out + at->first;
  for (int32_t i = 0; i < at->channels; ++i) to[i] = value_of(l, at->depth, counts[i], at->first + i);
}

/* Halves are rounded away from zero: the largest float below a half is added, and the sum truncated. */
static void write_int8s(const litebnn_bconv2d* l, const Place* at, const int32_t* counts, void* output) {
  int8_t* const to = (int8_t*)output + at->pixel * l->channels_out + at->first;
  const float low = (float)(-128 - l->output_zero_point), high = (float)(127 - l->output_zero_point);
  for (int32_t i = 0; i < at->channels; ++i) {
    float value = value_of(l, at->depth, counts[i], at->first + i);
    value = value > low ? value : low;
    value = value < high ? value : high;
    value += value < 0.0f ? -0x1.fffffep-2f : 0x1.fffffep-2f;
    to[i] = (int8_t)((int32_t)value + l->output_zero_point);
  }
}

/* Bits of a group that begin within a word. Groups come in rising order; the first bits of a word clear it. */
static void merge_bits(const uint32_t* from, int32_t first, int32_t count, uint32_t* pixel) {
  uint32_t* word = pixel + first / 32;
  const int32_t shift = first % 32;
  for (; count > 0; count -= 32, ++word) {
    const uint32_t bits = *from++;
    *word = shift ? *word | bits << shift : bits;
    if (shift && shift + (count < 32 ? count : 32) > 32) word[1] = bits >> (32 - shift);
  }
}

/* ---- Layers ---- */

typedef void Writer(const litebnn_bconv2d*, const Place*, const int32_t* counts, void* output);

/* Places in the scratch memory, in words. */
typedef struct {
  int32_t records, carries, numbers, words;
} Scratch;

static Scratch plan(const litebnn_bconv2d* l) {
  const litebnn_kernel* const kernel = l->kernel;
  Scratch s;
  s.records = l->window_words;
  s.carries = s.records + (l->window_words + 2) / 3 * kernel->record_words;
  s.numbers = s.carries + l->window_words * kernel->carry_words;
  s.words = s.numbers + (kernel->lanes > 1 ? kernel->lanes : LITEBNN_WORDS(l->channels_out / l->groups));
  return s;
}

int32_t litebnn_bconv2d_scratch_words(const litebnn_bconv2d* layer) { return plan(layer).words; }

/* Without a writer, the outputs are bits. */
static void run(const litebnn_bconv2d* l, const uint32_t* input, void* output, uint32_t* scratch, Writer* write) {
  const litebnn_kernel* const kernel = l->kernel;
  const Scratch at = plan(l);
  const int32_t group_channels = l->channels_out / l->groups, group_words = l->tap_bits / 32;
  const int32_t blocks = (group_channels + kernel->lanes - 1) / kernel->lanes;
  const int32_t block_presets = kernel->lanes > 1 ? (l->planes + 1) * (kernel->lanes / 32) : 1;
  const int32_t block_weights = kernel->weight_words * l->window_words / 3;
  Place place = {0, 0, group_channels, 0};
  for (int32_t y = 0; y < l->output_height; ++y) {
    for (int32_t x = 0; x < l->output_width; ++x, ++place.pixel) {
      const int32_t class = l->row_class ? l->row_class[y] + l->column_class[x] : 0;
      litebnn_counting c = {scratch, l->window_words, l->weights, l->presets, l->planes, scratch + at.carries};
      if (c.presets) c.presets += class * l->groups * blocks * block_presets;
      uint32_t* const words = (uint32_t*)output + place.pixel * LITEBNN_WORDS(l->channels_out);
      for (int32_t group = 0; group < l->groups; ++group) {
        gather(l, input + group * group_words, y, x, scratch);
        if (kernel->prepare) {
          kernel->prepare(scratch, l->window_words, scratch + at.records);
          c.records = scratch + at.records;
        }
        place.first = group * group_channels;
        if (!write) {
          const int is_aligned = group_channels % 32 == 0 || l->groups == 1;
          uint32_t* const to = is_aligned ? words + place.first / 32 : scratch + at.numbers;
          kernel->signs(&c, group_channels, to);
          if (!is_aligned) merge_bits(to, place.first, group_channels, words);
          c.weights += blocks * block_weights;
          if (c.presets) c.presets += blocks * block_presets;
          continue;
        }
        int32_t* const numbers = (int32_t*)(void*)(scratch + at.numbers);
        for (int32_t left = group_channels; left > 0; left -= kernel->lanes, place.first += kernel->lanes) {
          place.channels = left < kernel->lanes ? left : kernel->lanes;
          place.depth = l->depths[class];
          kernel->counts(&c, numbers);
          write(l, &place, numbers, output);
          c.weights += block_weights;
          if (c.presets) c.presets += block_presets;
        }
      }
    }
  }
}

void litebnn_bconv2d_bits(const litebnn_bconv2d* layer, const uint32_t* input, uint32_t* output, uint32_t* scratch) {
  run(layer, input, output, scratch, 0);
}

void litebnn_bconv2d_int8(const litebnn_bconv2d* layer, const uint32_t* input, int8_t* output, uint32_t* scratch) {
  run(layer, input, output, scratch, write_int8s);
}

void litebnn_bconv2d_float(const litebnn_bconv2d* layer, const uint32_t* input, float* output, uint32_t* scratch) {
  run(layer, input, output, scratch, write_floats);
}
