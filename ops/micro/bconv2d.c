/* Convolution and dense layers. For each pixel, the input bits of its window are gathered, a kernel counts the bits
 * that differ from the weights, and the outputs are computed from these counts. */
#include "kernel.h"

LITEBNN_OPTIONS

/* ---- Windows ---- */

static int is_inside(int32_t at, int32_t size) { return (uint32_t)at < (uint32_t)size; }

static inline uint32_t* copy(const uint32_t* from, int32_t words, uint32_t* to) {
  for (; words >= 4; words -= 4, from += 4, to += 4) {
    const uint32_t a = from[0], b = from[1], c = from[2], d = from[3];
    to[0] = a, to[1] = b, to[2] = c, to[3] = d;
  }
  for (; words > 0; --words) *to++ = *from++;
  return to;
}

static inline uint32_t* zero(int32_t words, uint32_t* to) {
  /* The access is volatile, because compilers would otherwise replace the loop by a call of memset. */
  for (; words > 0; --words) *(volatile uint32_t*)to++ = 0;
  return to;
}

/* An array of words to which bits are appended. `word` has the last `filled` bits, which are not yet a whole word. */
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
    /* If no bits are left, the shift could be by 32, which is undefined. */
    bits->word = bits->filled ? word >> (count - bits->filled) : 0;
  }
}

/* Gathers a row of taps of any window, tap by tap. `row` is null if the row lies outside the input. */
static void gather_taps(const litebnn_bconv2d* l, const uint32_t* row, int32_t column, Bits* bits) {
  const int32_t pixel_words = LITEBNN_WORDS(l->channels_in);
  for (int32_t x = 0; x < l->filter_width; ++x, column += l->dilation_width) {
    const uint32_t* from = row && is_inside(column, l->input_width) ? row + column * pixel_words : 0;
    for (int32_t left = l->tap_bits; left > 0; left -= 32) {
      append(bits, from ? *from++ : 0, left < 32 ? left : 32);
    }
  }
}

/* Gathers a row of taps of a window. The taps must be contiguous in memory, and each must consist of whole words. */
static uint32_t* gather_run(const litebnn_bconv2d* l, const uint32_t* row, int32_t column, uint32_t* to) {
  const int32_t tap_words = l->tap_bits / 32, taps = l->filter_width;
  if (!row) return zero(taps * tap_words, to);
  int32_t left = column < 0 ? -column : 0, right = column + taps - l->input_width;
  if (left > taps) left = taps;
  if (right < 0) right = 0;
  if (right > taps - left) right = taps - left;
  to = zero(left * tap_words, to);
  to = copy(row + (column + left) * tap_words, (taps - left - right) * tap_words, to);
  return zero(right * tap_words, to);
}

/* Gathers any window. `input` points to the group's first word in the first pixel of the image. */
static void gather(const litebnn_bconv2d* l, const uint32_t* input, int32_t line, int32_t column, uint32_t* window) {
  const int32_t row_words = l->input_width * LITEBNN_WORDS(l->channels_in);
  const int is_run = l->dilation_width == 1 && l->groups == 1 && l->tap_bits % 32 == 0;
  Bits bits = {window, 0, 0};
  for (int32_t i = 0; i < l->filter_height; ++i, line += l->dilation_height) {
    const uint32_t* const row = is_inside(line, l->input_height) ? input + line * row_words : 0;
    if (is_run) {
      bits.to = gather_run(l, row, column, bits.to);
    } else {
      gather_taps(l, row, column, &bits);
    }
  }
  if (bits.filled) *bits.to++ = bits.word;
  zero((int32_t)(window + l->window_words - bits.to), bits.to);
}

/* ---- Outputs ---- */

/* A block of output channels (as many as the kernel has lanes) of one output pixel. */
typedef struct {
  int32_t pixel, first, channels, depth;
} Block;

typedef void Writer(const litebnn_bconv2d*, const Block*, const uint32_t* counts, void* output);

/* Keeps the compiler from fusing a product and a sum to one operation with a single rounding, on CPUs that have it. */
static inline float rounded(float value) {
#if defined(__FP_FAST_FMAF) && defined(__ARM_FP) && !defined(__aarch64__)
  __asm__("" : "+t"(value));
  return value;
#elif defined(__FP_FAST_FMAF)
  volatile float product = value;
  return product;
#else
  return value;
#endif
}

/* The data of the functions that compute channels' values. These functions are inlined, so that the loops over channels
 * contain no calls, and `is_clamped` and `lanes` are constants in each copy. */
typedef struct {
  const litebnn_bconv2d* layer;
  const float *multiplier, *bias; /* of the block's first channel on */
  int32_t channels, depth;
} Values;

static inline int32_t dot_of(const Values* v, const uint32_t* counts, int32_t i, int is_clamped, int32_t lanes) {
  const int32_t count = lanes == 1 ? (int32_t)*counts : (int32_t)((const uint16_t*)(const void*)counts)[i];
  int32_t dot = v->depth - 2 * count;
  if (is_clamped) {
    if (dot < v->layer->clamp_min) dot = v->layer->clamp_min;
    if (dot > v->layer->clamp_max) dot = v->layer->clamp_max;
  }
  return dot;
}

static inline float value_of(const Values* v, const uint32_t* counts, int32_t i, int is_clamped, int32_t lanes) {
  return rounded((float)dot_of(v, counts, i, is_clamped, lanes) * v->multiplier[i]) + v->bias[i];
}

static inline int8_t saturated(int32_t value) { return (int8_t)(value < -128 ? -128 : value > 127 ? 127 : value); }

/* Halves are rounded away from zero: the largest float below a half is added to the magnitude, and the sum truncated.
 */
static inline int8_t quantized(float value, int32_t zero_point) {
  union {
    float value;
    uint32_t bits;
  } v, half;
  v.value = value;
  /* Limits the magnitude to 65536, above which the result saturates in any case. Comparing the bits as integers takes
   * half the instructions of comparing floats. */
  if ((v.bits & 0x7FFFFFFFu) > 0x47800000u) v.bits = (v.bits & 0x80000000u) | 0x47800000u;
  half.bits = 0x3EFFFFFFu | (v.bits & 0x80000000u);
  return saturated((int32_t)(v.value + half.value) + zero_point);
}

/* Expands `body` once for each combination of constants, so that its loop has no branches on them. */
#define WRITE_VALUES(body)                                                                                     \
  const int is_free = l->clamp_min <= -65536 && l->clamp_max >= 65536;                                         \
  const Values v = {l, l->multiplier ? l->multiplier + block->first : 0, l->bias ? l->bias + block->first : 0, \
                    block->channels, block->depth};                                                            \
  if (l->kernel->lanes == 1) {                                                                                 \
    body(1, 1);                                                                                                \
  } else if (is_free) {                                                                                        \
    body(0, 2);                                                                                                \
  } else {                                                                                                     \
    body(1, 2);                                                                                                \
  }

static void write_floats(const litebnn_bconv2d* l, const Block* block, const uint32_t* counts, void* output) {
  float* const to = (float*)output + block->pixel * l->channels_out + block->first;
#define WRITE_FLOATS(is_clamped, lanes) \
  for (int32_t i = 0; i < v.channels; ++i) to[i] = value_of(&v, counts, i, is_clamped, lanes)
  WRITE_VALUES(WRITE_FLOATS)
}

static void write_int8s(const litebnn_bconv2d* l, const Block* block, const uint32_t* counts, void* output) {
  int8_t* const to = (int8_t*)output + block->pixel * l->channels_out + block->first;
  const int32_t zero_point = l->output_zero_point;
#define WRITE_INT8S(is_clamped, lanes) \
  for (int32_t i = 0; i < v.channels; ++i) to[i] = quantized(value_of(&v, counts, i, is_clamped, lanes), zero_point)
  WRITE_VALUES(WRITE_INT8S)
}

/* Writes int8 outputs as write_int8s does, but with integers. The exporter has checked that both give the same result
 * for every possible count. */
static void write_fixed(const litebnn_bconv2d* l, const Block* block, const uint32_t* counts, void* output) {
  int8_t* const to = (int8_t*)output + block->pixel * l->channels_out + block->first;
  const int32_t *const multiplier = l->fixed_multiplier + block->first, *const bias = l->fixed_bias + block->first;
  const uint8_t* const shift = l->fixed_shift + block->first;
#define WRITE_FIXED(is_clamped, lanes)     \
  for (int32_t i = 0; i < v.channels; ++i) \
  to[i] = saturated((dot_of(&v, counts, i, is_clamped, lanes) * multiplier[i] + bias[i]) >> shift[i])
  WRITE_VALUES(WRITE_FIXED)
}

/* Copies a group's output bits to the pixel's words, in which they may begin within a word. Groups must be copied in
 * rising order, because the first bits of a word overwrite the whole word. */
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

/* The state of a running layer: pointers into the scratch memory, and sizes in words. */
typedef struct {
  const litebnn_bconv2d* layer;
  const uint32_t* input;
  void* output;
  Writer* write; /* null if the outputs are bits */
  uint32_t *window, *records, *carries, *numbers;
  int32_t group_channels, block_presets, block_weights, group_presets, group_weights;
  /* For windows inside the input: the words from one row of taps to the next, and the words in a row of taps. Both are
   * 0 if the taps of a row are not contiguous in memory. */
  int32_t row_words, run_words;
} Run;

/* Returns the words of memory for the counts of a block, or for the output bits of a group before they are merged into
 * the pixel's words. */
static int32_t number_words(const litebnn_bconv2d* l) {
  const int32_t of_block = (l->kernel->lanes + 1) / 2, of_group = LITEBNN_WORDS(l->channels_out / l->groups);
  return of_block > of_group ? of_block : of_group;
}

int32_t litebnn_bconv2d_scratch_words(const litebnn_bconv2d* l) {
  const litebnn_kernel* const kernel = l->kernel;
  return l->window_words * (1 + kernel->carry_words) + kCarryRest + (l->window_words + 2) / 3 * kernel->record_words +
         number_words(l);
}

static void write_bits(const Run* r, const litebnn_counting* c, int32_t pixel, int32_t group) {
  const litebnn_bconv2d* const l = r->layer;
  uint32_t* const words = (uint32_t*)r->output + pixel * LITEBNN_WORDS(l->channels_out);
  const int32_t first = group * r->group_channels;
  if (r->group_channels % 32 == 0 || l->groups == 1) {
    l->kernel->signs(c, r->group_channels, words + first / 32);
  } else {
    l->kernel->signs(c, r->group_channels, r->numbers);
    merge_bits(r->numbers, first, r->group_channels, words);
  }
}

static void write_numbers(const Run* r, litebnn_counting* c, int32_t pixel, int32_t group, int32_t depth) {
  const int32_t lanes = r->layer->kernel->lanes;
  Block block = {pixel, group * r->group_channels, 0, depth};
  for (int32_t left = r->group_channels; left > 0; left -= lanes, block.first += lanes) {
    block.channels = left < lanes ? left : lanes;
    r->layer->kernel->counts(c, r->numbers);
    r->write(r->layer, &block, r->numbers, r->output);
    c->weights += r->block_weights;
    if (c->presets) c->presets += r->block_presets;
  }
}

/* Copies a window inside the input. The function is not inlined, so that its loop has all registers to itself. */
static __attribute__((noinline)) void copy_rows(const Run* r, const uint32_t* from) {
  const int32_t words = r->run_words, step = r->row_words;
  uint32_t *to = r->window, *const end = to + r->layer->window_words;
  for (int32_t rows = r->layer->filter_height; rows > 0; --rows, from += step) to = copy(from, words, to);
  zero((int32_t)(end - to), to);
}

static void run_pixel(const Run* r, int32_t pixel, int32_t line, int32_t column, int32_t class) {
  const litebnn_bconv2d* const l = r->layer;
  litebnn_counting c = {r->window, l->window_words, l->weights, l->presets, l->planes, r->carries};
  if (c.presets) c.presets += class * l->groups * r->group_presets;
  for (int32_t group = 0; group < l->groups; ++group) {
    if (r->run_words && line >= 0 && column >= 0 && column + l->filter_width <= l->input_width &&
        line + (l->filter_height - 1) * l->dilation_height < l->input_height) {
      copy_rows(r, r->input + (line * l->input_width + column) * (l->tap_bits / 32));
    } else {
      gather(l, r->input + group * (l->tap_bits / 32), line, column, r->window);
    }
    if (l->kernel->prepare) {
      l->kernel->prepare(r->window, l->window_words, r->records);
      c.records = r->records;
    }
    litebnn_counting blocks = c;
    if (r->write) {
      write_numbers(r, &blocks, pixel, group, l->depths[class]);
    } else {
      write_bits(r, &blocks, pixel, group);
    }
    c.weights += r->group_weights;
    if (c.presets) c.presets += r->group_presets;
  }
}

static void run(const litebnn_bconv2d* l, const uint32_t* input, void* output, uint32_t* scratch, Writer* write) {
  const litebnn_kernel* const kernel = l->kernel;
  Run r = {l, input, output, write, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  r.carries = scratch;
  r.window = r.carries + l->window_words * kernel->carry_words + kCarryRest;
  r.records = r.window + l->window_words;
  r.numbers = r.records + (l->window_words + 2) / 3 * kernel->record_words;
  r.group_channels = l->channels_out / l->groups;
  r.block_presets = kernel->lanes > 1 ? (l->planes + 1) * (kernel->lanes / 32) : 1;
  r.block_weights = kernel->weight_words * l->window_words / 3;
  const int32_t blocks = (r.group_channels + kernel->lanes - 1) / kernel->lanes;
  r.group_presets = blocks * r.block_presets;
  r.group_weights = blocks * r.block_weights;
  if (l->dilation_width == 1 && l->groups == 1 && l->tap_bits % 32 == 0) {
    r.row_words = l->dilation_height * l->input_width * (l->tap_bits / 32);
    r.run_words = l->filter_width * (l->tap_bits / 32);
  }
  int32_t pixel = 0, line = -l->pad_top;
  for (int32_t y = 0; y < l->output_height; ++y, line += l->stride_height) {
    int32_t column = -l->pad_left;
    for (int32_t x = 0; x < l->output_width; ++x, ++pixel, column += l->stride_width) {
      run_pixel(&r, pixel, line, column, l->row_class ? l->row_class[y] + l->column_class[x] : 0);
    }
  }
}

void litebnn_bconv2d_bits(const litebnn_bconv2d* layer, const uint32_t* input, uint32_t* output, uint32_t* scratch) {
  run(layer, input, output, scratch, 0);
}

void litebnn_bconv2d_int8(const litebnn_bconv2d* layer, const uint32_t* input, int8_t* output, uint32_t* scratch) {
  run(layer, input, output, scratch, layer->fixed_multiplier ? write_fixed : write_int8s);
}

void litebnn_bconv2d_float(const litebnn_bconv2d* layer, const uint32_t* input, float* output, uint32_t* scratch) {
  run(layer, input, output, scratch, write_floats);
}
