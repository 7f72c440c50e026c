/* The loops of CONV_2D, FULLY_CONNECTED and DEPTHWISE_CONV_2D, for any type: defines the functions CONV2D_ROWS and
 * DEPTHWISE_ROWS. Layer, Value, Sum and the functions of one element come from the file that includes this one. */

/* The number of output channels that are computed together, so that each input value is loaded once for all of them. */
enum { BLOCK = 4 };

/* The position of a window in the input, and the weights of the first output channel that is computed. */
typedef struct {
  const Value* input;
  const Value* weights;
  int32_t filter_size, run, tap_step;
  litebnn_taps rows, columns;
} Place;

/* Returns the place of a window. If there is one group and no dilation, all taps of a window's row are contiguous in
 * both the input and the weights, so they are one run. */
static Place place_of(const Layer* layer, const Value* input, litebnn_taps rows, litebnn_taps columns) {
  const litebnn_window* w = &layer->window;
  const int32_t depth = layer->group_channels, taps = columns.end - columns.begin;
  const int32_t is_whole = depth == w->channels_in && w->dilation_width == 1;
  Place place = {input, layer->weights, w->filter_height * w->filter_width * depth, depth, 1, rows, columns};
  if (is_whole && taps > 0) {
    place.run = taps * depth;
    place.tap_step = taps;
  }
  return place;
}

static void sum_block(const Layer* layer, const Place* at, Sum* sums) {
  const litebnn_window* w = &layer->window;
  const int32_t size = at->filter_size;
  const Sum input_zero = input_zero_of(layer), filter_zero = filter_zero_of(layer);
  Sum a = 0, b = 0, c = 0, d = 0;
  for (int32_t ky = at->rows.begin; ky < at->rows.end; ++ky) {
    for (int32_t kx = at->columns.begin; kx < at->columns.end; kx += at->tap_step) {
      const Value* x = at->input + litebnn_tap_pixel(w, at->rows, at->columns, ky, kx) * w->channels_in;
      const Value* v = at->weights + (ky * w->filter_width + kx) * layer->group_channels;
      for (const Value* const end = x + at->run; x < end; ++x, ++v) {
        const Sum value = *x - input_zero;
        a += value * (v[0] - filter_zero);
        b += value * (v[size] - filter_zero);
        c += value * (v[2 * size] - filter_zero);
        d += value * (v[3 * size] - filter_zero);
      }
    }
  }
  sums[0] = a;
  sums[1] = b;
  sums[2] = c;
  sums[3] = d;
}

static Sum sum_one(const Layer* layer, const Place* at) {
  const litebnn_window* w = &layer->window;
  const Sum input_zero = input_zero_of(layer), filter_zero = filter_zero_of(layer);
  Sum sum = 0;
  for (int32_t ky = at->rows.begin; ky < at->rows.end; ++ky) {
    for (int32_t kx = at->columns.begin; kx < at->columns.end; kx += at->tap_step) {
      const Value* x = at->input + litebnn_tap_pixel(w, at->rows, at->columns, ky, kx) * w->channels_in;
      const Value* v = at->weights + (ky * w->filter_width + kx) * layer->group_channels;
      for (const Value* const end = x + at->run; x < end; ++x, ++v) {
        sum += (*x - input_zero) * (*v - filter_zero);
      }
    }
  }
  return sum;
}

void CONV2D_ROWS(const Layer* layer, const Value* input, Value* output, int32_t first_row, int32_t rows) {
  const litebnn_window* w = &layer->window;
  const int32_t group_outputs = w->channels_out / (w->channels_in / layer->group_channels);
  for (int32_t y = first_row; y < first_row + rows; ++y) {
    const litebnn_taps row_taps = litebnn_taps_of_row(w, y);
    for (int32_t x = 0; x < w->output_width; ++x) {
      Place place = place_of(layer, input, row_taps, litebnn_taps_of_column(w, x));
      for (int32_t o = 0; o < w->channels_out;) {
        const int32_t group = o / group_outputs, is_block = o + BLOCK <= (group + 1) * group_outputs;
        const int32_t count = is_block ? BLOCK : 1;
        Sum sums[BLOCK];
        place.input = input + group * layer->group_channels;
        place.weights = layer->weights + o * place.filter_size;
        if (is_block) {
          sum_block(layer, &place, sums);
        } else {
          sums[0] = sum_one(layer, &place);
        }
        for (int32_t i = 0; i < count; ++i) *output++ = output_of(layer, sums[i], o + i, rounds_once(layer));
        o += count;
      }
    }
  }
}

void DEPTHWISE_ROWS(const Layer* layer, const Value* input, Value* output, int32_t first_row, int32_t rows) {
  const litebnn_window* w = &layer->window;
  const int32_t multiplier = w->channels_out / w->channels_in;
  for (int32_t y = first_row; y < first_row + rows; ++y) {
    const litebnn_taps row_taps = litebnn_taps_of_row(w, y);
    for (int32_t x = 0; x < w->output_width; ++x) {
      const litebnn_taps column_taps = litebnn_taps_of_column(w, x);
      for (int32_t o = 0; o < w->channels_out; ++o) {
        Sum sum = 0;
        for (int32_t ky = row_taps.begin; ky < row_taps.end; ++ky) {
          for (int32_t kx = column_taps.begin; kx < column_taps.end; ++kx) {
            const int32_t pixel = litebnn_tap_pixel(w, row_taps, column_taps, ky, kx);
            const Value weight = layer->weights[(ky * w->filter_width + kx) * w->channels_out + o];
            sum += (input[pixel * w->channels_in + o / multiplier] - input_zero_of(layer)) * weight;
          }
        }
        *output++ = output_of(layer, sum, o, 0);
      }
    }
  }
}
