// Multiplies images by a gate (one factor per channel), and applies the operations after the multiplication in the same
// pass.
#include <algorithm>

#include "kernels/isa/isa.h"
#include "kernels/platform/thread_pool.h"

namespace litebnn {
namespace {

// Estimated cycles to load a value from the L2 cache and to store the result.
constexpr double kCyclesPerValue = 0.4;

}  // namespace

void GateImages(const Isa& isa, ThreadPool& pool, const GatedImages& images) {
  const LoopSize size = {images.images * images.rows * images.columns, 1, kCyclesPerValue * images.channels};
  // If the rows of both operands are contiguous in memory, each image is treated as one long row.
  const auto is_contiguous = [&](const GateOperand& operand) {
    return operand.row_stride == images.columns * operand.pixel_stride;
  };
  const int64_t rows = is_contiguous(images.input) && is_contiguous(images.gate) ? 1 : images.rows;
  const int64_t columns = images.rows / rows * images.columns;
  ParallelFor(pool, size, [&](int, int64_t begin, int64_t end) {
    for (int64_t count; begin < end; begin += count) {
      const int64_t column = begin % columns, row = begin / columns % rows, image = begin / columns / rows;
      const auto find = [=](const GateOperand& operand) {
        return operand.values + image * operand.image_stride + row * operand.row_stride + column * operand.pixel_stride;
      };
      count = std::min(columns - column, end - begin);
      const int64_t first = begin * images.channels;
      isa.gate_pixels({find(images.input), find(images.gate), images.input.pixel_stride, images.gate.pixel_stride,
                       images.slope, images.addend == nullptr ? nullptr : images.addend + first, images.rectify_product,
                       images.rectify_sum, images.channels, images.output + first},
                      count);
    }
  });
}

}  // namespace litebnn
