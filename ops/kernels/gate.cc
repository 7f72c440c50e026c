// Images times a gate, a value for each channel of each image or for all of them, and what follows in the same pass.
#include <algorithm>

#include "kernels/isa/isa.h"
#include "kernels/platform/thread_pool.h"

namespace litebnn {
namespace {

// A value is read from the L2 cache and written in about so many cycles.
constexpr double kCyclesPerValue = 0.4;

const float* At(const GateOperand& operand, int64_t image, int64_t pixel) {
  return operand.values + image * operand.image_stride + pixel * operand.pixel_stride;
}

}  // namespace

void GateImages(const Isa& isa, ThreadPool& pool, const GatedImages& images) {
  const LoopSize size = {images.images * images.pixels, 1, kCyclesPerValue * images.channels};
  ParallelFor(pool, size, [&](int, int64_t begin, int64_t end) {
    for (int64_t count; begin < end; begin += count) {
      const int64_t image = begin / images.pixels, pixel = begin % images.pixels;
      count = std::min(images.pixels - pixel, end - begin);
      const int64_t first = begin * images.channels;
      isa.gate_pixels(
          {At(images.input, image, pixel), At(images.gate, image, pixel), images.input.pixel_stride,
           images.gate.pixel_stride, images.slope, images.addend == nullptr ? nullptr : images.addend + first,
           images.rectify_product, images.rectify_sum, images.channels, images.output + first},
          count);
    }
  });
}

}  // namespace litebnn
