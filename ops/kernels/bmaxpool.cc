// A maximum over +1 and -1 is the AND of the window's words.
#include <algorithm>

#include "kernels/table.h"
#include "kernels/thread_pool.h"

namespace litebnn {
namespace {

struct Pool2d {
  const BMaxPool2dGeometry& geometry;
  const uint32_t* input;
  uint32_t* output;

  // Rows of output pixels, over all images.
  void Rows(int64_t begin, int64_t end) const {
    const BMaxPool2dGeometry& g = geometry;
    for (int64_t row = begin; row < end; ++row) {
      const int64_t image = row / g.output_height;
      const int64_t top = row % g.output_height * g.stride_height - g.pad_top;
      const int64_t first_y = std::max<int64_t>(top, 0);
      const int64_t last_y = std::min<int64_t>(top + g.filter_height, g.input_height);
      for (int64_t x = 0; x < g.output_width; ++x) {
        const int64_t left = x * g.stride_width - g.pad_left;
        const int64_t first_x = std::max<int64_t>(left, 0);
        const int64_t last_x = std::min<int64_t>(left + g.filter_width, g.input_width);
        uint32_t* const pixel = output + (row * g.output_width + x) * g.words;
        std::fill_n(pixel, g.words, ~uint32_t{0});
        for (int64_t y = first_y; y < last_y; ++y) {
          const uint32_t* tap = input + ((image * g.input_height + y) * g.input_width + first_x) * g.words;
          for (int64_t tap_x = first_x; tap_x < last_x; ++tap_x, tap += g.words) {
            for (int32_t word = 0; word < g.words; ++word) pixel[word] &= tap[word];
          }
        }
      }
    }
  }
};

}  // namespace

void BMaxPool2d(const Kernels&, ThreadPool& pool, const BMaxPool2dGeometry& geometry, const uint32_t* input,
                uint32_t* output) {
  Pool2d pool2d{geometry, input, output};
  pool.ParallelFor(
      static_cast<int64_t>(geometry.batch) * geometry.output_height, 1,
      [](void* context, int, int64_t begin, int64_t end) { static_cast<Pool2d*>(context)->Rows(begin, end); }, &pool2d);
}

}  // namespace litebnn
