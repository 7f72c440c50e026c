// Max pooling of packed signs, floats and int8 values, and average pooling of floats and int8 values. Packed signs
// store -1 as the bit 1 and +1 as the bit 0. Therefore the maximum of a window is the AND of its words.
#include <algorithm>

#include "kernels/isa/isa.h"
#include "kernels/platform/thread_pool.h"

namespace litebnn {
namespace {

// Estimated cycles for each value or word of a window, and for each window in addition.
constexpr double kCyclesPerValue = 0.2, kCyclesPerWindow = 10;
// Estimated cycles to load a value from the L2 cache and to add it to a sum.
constexpr double kCyclesPerSum = 0.5;
// Least number of pixels whose signs AveragePool2d packs at a time, if a few rows have so many.
constexpr int64_t kPackedPixels = 8;
// Number of channels of int8 images that AveragePool2d sums at a time.
constexpr int32_t kSummedChannels = 64;

// The part of an output pixel's window that lies inside the input.
struct Window {
  int64_t output_pixel;
  int64_t input_pixel;  // input pixel of the first tap
  int64_t rows, columns;
};

// Calls visit(window) for the window of every output pixel. Threads share the windows.
template <typename Visit>
void ForEachWindow(ThreadPool& pool, const MaxPool2dGeometry& g, Visit visit) {
  const double cycles_per_window = kCyclesPerWindow + kCyclesPerValue * g.filter_height * g.filter_width * g.channels;
  const double cycles = g.output_width * cycles_per_window;
  ParallelFor(pool, {int64_t{g.batch} * g.output_height, 1, cycles}, [&](int, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t image = row / g.output_height;
      const int64_t top = row % g.output_height * g.stride_height - g.pad_top;
      const int64_t first_y = std::max<int64_t>(top, 0);
      const int64_t last_y = std::min<int64_t>(top + g.filter_height, g.input_height);
      for (int64_t x = 0; x < g.output_width; ++x) {
        const int64_t left = x * g.stride_width - g.pad_left;
        const int64_t first_x = std::max<int64_t>(left, 0);
        const int64_t last_x = std::min<int64_t>(left + g.filter_width, g.input_width);
        visit(Window{row * g.output_width + x, (image * g.input_height + first_y) * g.input_width + first_x,
                     last_y - first_y, last_x - first_x});
      }
    }
  });
}

// Adds kChannels channels of input * multiplier + addend, summed over `pixels` pixels, to `sums`. The pixels are
// `channels` floats apart.
template <int kChannels>
void AddPixels(const float* input, const float* multiplier, const float* addend, int64_t pixels, int32_t channels,
               float* sums) {
  float totals[kChannels] = {};
  for (; pixels > 0; --pixels, input += channels) {
    for (int c = 0; c < kChannels; ++c) totals[c] += input[c] * multiplier[c] + addend[c];
  }
  for (int c = 0; c < kChannels; ++c) sums[c] += totals[c];
}

// Adds the sum of `pixels` pixels of a row, after the batch norm, to the pixel `sums`.
void AddRow(const AveragedImages& images, int64_t first_pixel, int64_t pixels, int32_t channels, float* sums) {
  constexpr int kChannels = 16;  // the sums of this number of channels fit into the registers of every ISA
  const float* const input = images.input + first_pixel * channels;
  int32_t c = 0;
  for (; c <= channels - kChannels; c += kChannels) {
    AddPixels<kChannels>(input + c, images.multiplier + c, images.addend + c, pixels, channels, sums + c);
  }
  for (; c < channels; ++c) {
    AddPixels<1>(input + c, images.multiplier + c, images.addend + c, pixels, channels, sums + c);
  }
}

// Computes an int8 pool by an ISA's function for one window.
void PoolInt8(void (*pool_window)(const Int8Window&, int8_t*), ThreadPool& pool, const MaxPool2dGeometry& geometry,
              const int8_t* input, int8_t output_min, int8_t output_max, int8_t* output) {
  const int32_t channels = geometry.channels;
  const int64_t row_stride = int64_t{geometry.input_width} * channels;
  ForEachWindow(pool, geometry, [=](const Window& window) {
    const int8_t* const first = input + window.input_pixel * channels;
    pool_window({first, window.rows, window.columns, row_stride, channels, output_min, output_max},
                output + window.output_pixel * channels);
  });
}

}  // namespace

void BMaxPool2d(ThreadPool& pool, const MaxPool2dGeometry& geometry, const uint32_t* input, uint32_t* output) {
  const int32_t words = geometry.channels;
  const int64_t row_words = int64_t{geometry.input_width} * words;
  ForEachWindow(pool, geometry, [=](const Window& window) {
    uint32_t* const pixel = output + window.output_pixel * words;
    std::fill_n(pixel, words, ~uint32_t{0});
    for (int64_t y = 0; y < window.rows; ++y) {
      const uint32_t* tap = input + window.input_pixel * words + y * row_words;
      for (int64_t x = 0; x < window.columns; ++x, tap += words) {
        for (int32_t word = 0; word < words; ++word) pixel[word] &= tap[word];
      }
    }
  });
}

void MaxPool2d(const Isa& isa, ThreadPool& pool, const MaxPool2dGeometry& geometry, const FloatPool& images) {
  const int32_t channels = geometry.channels;
  const auto max_window = isa.max_window;
  const int64_t row_stride = int64_t{geometry.input_width} * channels;
  ForEachWindow(pool, geometry, [=](const Window& window) {
    const FloatWindow taps = {images.input + window.input_pixel * channels,
                              window.rows,
                              window.columns,
                              row_stride,
                              channels,
                              images.multiplier,
                              images.addend,
                              images.rectify};
    max_window(taps, images.floor, images.output + window.output_pixel * images.output_channels);
  });
}

void MaxPool2d(const Isa& isa, ThreadPool& pool, const MaxPool2dGeometry& geometry, const int8_t* input,
               int8_t output_min, int8_t output_max, int8_t* output) {
  PoolInt8(isa.max_int8_window, pool, geometry, input, output_min, output_max, output);
}

void AveragePool2d(const Isa& isa, ThreadPool& pool, const MaxPool2dGeometry& geometry, const int8_t* input,
                   int8_t output_min, int8_t output_max, int8_t* output) {
  const int64_t taps = int64_t{geometry.filter_height} * geometry.filter_width;
  if (isa.average_int8_window != nullptr && taps <= kMostAveragedTaps) {
    return PoolInt8(isa.average_int8_window, pool, geometry, input, output_min, output_max, output);
  }
  const int32_t channels = geometry.channels;
  const int64_t row_stride = int64_t{geometry.input_width} * channels;
  // The loops over channels are plain, so that compilers vectorize them for any CPU.
  ForEachWindow(pool, geometry, [=](const Window& window) {
    const auto count = static_cast<float>(window.rows * window.columns);
    const auto half = static_cast<int32_t>(window.rows * window.columns / 2);
    const int8_t* const first = input + window.input_pixel * channels;
    int8_t* const pixel = output + window.output_pixel * channels;
    for (int32_t channel = 0; channel < channels; channel += kSummedChannels) {
      const int32_t some = std::min(channels - channel, kSummedChannels);
      int32_t sums[kSummedChannels] = {};
      for (int64_t y = 0; y < window.rows; ++y) {
        const int8_t* tap = first + y * row_stride + channel;
        for (int64_t x = 0; x < window.columns; ++x, tap += channels) {
          for (int32_t i = 0; i < some; ++i) sums[i] += tap[i];
        }
      }
      for (int32_t i = 0; i < some; ++i) {
        // If two integers below 2^24 are divided as floats, the quotient truncates to the same integer as the exact
        // quotient.
        const int32_t rounded = sums[i] > 0 ? sums[i] + half : sums[i] - half;
        const auto average = static_cast<int32_t>(static_cast<float>(rounded) / count);
        const int32_t above = average > output_min ? average : output_min;
        pixel[channel + i] = static_cast<int8_t>(above < output_max ? above : output_max);
      }
    }
  });
}

void AveragePool2d(const Isa& isa, ThreadPool& pool, const MaxPool2dGeometry& geometry, const AveragedImages& images) {
  const MaxPool2dGeometry& g = geometry;
  const int32_t channels = g.channels, words = PackedWords(channels);
  const bool has_one_window = g.output_height == 1 && g.output_width == 1;
  const int64_t rows = has_one_window ? std::min(g.filter_height - g.pad_top, g.input_height) : 0;
  const int64_t columns = has_one_window ? std::min(g.filter_width - g.pad_left, g.input_width) : 0;
  // The packing loads the constants once for all pixels, so it takes several narrow rows.
  const int64_t rows_per_packing = std::max<int64_t>(kPackedPixels / std::max<int64_t>(g.input_width, 1), 1);
  const LoopSize size = {int64_t{g.batch} * g.input_height, rows_per_packing, kCyclesPerSum * g.input_width * channels};
  ParallelFor(pool, size, [&](int, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t first = row * g.input_width;
      if (images.signs != nullptr && (row - begin) % rows_per_packing == 0) {
        const int64_t rows_to_pack = std::min(end - row, rows_per_packing);
        isa.pack_affine_signs(images.input + first * channels, images.multiplier, images.addend,
                              rows_to_pack * g.input_width, channels, images.signs + first * words, words);
      }
      // The row is still in the L1 cache, so reading it once more takes little time.
      float* const sums = images.row_sums + row * channels;
      std::fill_n(sums, channels, 0.0f);
      AddRow(images, first, columns, channels, sums);
    }
  });
  for (int64_t image = 0; has_one_window && image < g.batch; ++image) {
    float* const pixel = images.output + image * channels;
    std::fill_n(pixel, channels, 0.0f);
    const float* sums = images.row_sums + image * g.input_height * channels;
    for (int64_t row = 0; row < rows; ++row, sums += channels) {
      for (int32_t c = 0; c < channels; ++c) pixel[c] += sums[c];
    }
    for (int32_t c = 0; c < channels; ++c) pixel[c] /= static_cast<float>(rows * columns);
  }
  if (has_one_window) return;
  ForEachWindow(pool, g, [&images, &g, channels](const Window& window) {
    float* const pixel = images.output + window.output_pixel * channels;
    std::fill_n(pixel, channels, 0.0f);
    for (int64_t row = 0; row < window.rows; ++row) {
      AddRow(images, window.input_pixel + row * g.input_width, window.columns, channels, pixel);
    }
    for (int32_t c = 0; c < channels; ++c) pixel[c] /= static_cast<float>(window.rows * window.columns);
  });
}

}  // namespace litebnn
