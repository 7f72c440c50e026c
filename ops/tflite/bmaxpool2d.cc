// LceBMaxPool2d: max pooling of packed signs.
#include <limits>
#include <new>

#include "tflite/contract.h"
#include "tflite/op.h"
#include "tflite/window.h"

namespace litebnn {
namespace {

class BMaxPool2dNode final : public Op {
 public:
  explicit BMaxPool2dNode(const Kernels& kernels) : kernels_(kernels) {}

  bool Prepare(const Node& node) override {
    constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
    if (!node.CheckInputType(0, {kTfLiteInt32}) || !node.CheckInputRank(0, 4)) return false;
    if (!node.CheckOutputType({kTfLiteInt32})) return false;

    const FlexbufferMap options(node.options, node.options_size);
    BMaxPool2dGeometry& g = geometry_;
    int32_t padding;
    if (!node.ReadOption(options, contract::kPadding, contract::kPaddingSame, contract::kPaddingValid, &padding) ||
        !node.ReadOption(options, contract::kStrideWidth, 1, kMax, &g.stride_width) ||
        !node.ReadOption(options, contract::kStrideHeight, 1, kMax, &g.stride_height) ||
        !node.ReadOption(options, contract::kFilterWidth, 1, kMax, &g.filter_width) ||
        !node.ReadOption(options, contract::kFilterHeight, 1, kMax, &g.filter_height)) {
      return false;
    }

    const std::vector<int32_t>& shape = node.Input(0)->shape;
    g.batch = shape[0];
    g.input_height = shape[1];
    g.input_width = shape[2];
    g.words = shape[3];
    const WindowAxis height = {"height", g.input_height, g.filter_height, g.stride_height, 1};
    const WindowAxis width = {"width", g.input_width, g.filter_width, g.stride_width, 1};
    if (!SlideWindow(node, height, padding, &g.output_height, &g.pad_top) ||
        !SlideWindow(node, width, padding, &g.output_width, &g.pad_left)) {
      return false;
    }
    node.outputs[0]->shape = {g.batch, g.output_height, g.output_width, g.words};
    return true;
  }

  void Run(ThreadPool& pool, const void* const* inputs, void* const* outputs, void*) const override {
    BMaxPool2d(kernels_, pool, geometry_, static_cast<const uint32_t*>(inputs[0]), static_cast<uint32_t*>(outputs[0]));
  }

 private:
  const Kernels& kernels_;
  BMaxPool2dGeometry geometry_ = {};
};

std::unique_ptr<Op> Create(const Kernels& kernels) {
  return std::unique_ptr<Op>(new (std::nothrow) BMaxPool2dNode(kernels));
}

}  // namespace

const OpType kBMaxPool2dOp = {contract::kBMaxPool2d, 1, 1, {"input"}, Create};

}  // namespace litebnn
