// Estimates the work of the nodes that the delegate leaves to the runtime.
#include <algorithm>
#include <limits>

#include "tflite/partition/claim.h"
#include "tflite/runtime/node.h"

namespace litebnn {
namespace {

// The multiply-adds per cycle that XNNPACK does on slow CPUs. Faster CPUs need less time, so the estimated work is an
// upper limit for them.
constexpr double kMultiplyAddsPerCycle = 8;
constexpr double kUnknown = std::numeric_limits<double>::infinity();

// Ops whose cost is estimated from the size of their weights, which are their second input.
constexpr int32_t kLayers[] = {kTfLiteBuiltinConv2d, kTfLiteBuiltinDepthwiseConv2d, kTfLiteBuiltinFullyConnected};
// Ops that take about a cycle per value.
constexpr int32_t kOthers[] = {
    kTfLiteBuiltinAdd,      kTfLiteBuiltinAveragePool2d, kTfLiteBuiltinConcatenation, kTfLiteBuiltinDequantize,
    kTfLiteBuiltinLogistic, kTfLiteBuiltinMaxPool2d,     kTfLiteBuiltinMul,           kTfLiteBuiltinRelu,
    kTfLiteBuiltinRelu6,    kTfLiteBuiltinReshape,       kTfLiteBuiltinSoftmax,       kTfLiteBuiltinPad,
    kTfLiteBuiltinMean,     kTfLiteBuiltinSub,           kTfLiteBuiltinPrelu,         kTfLiteBuiltinQuantize};

template <size_t kCount>
bool IsAmong(const int32_t (&codes)[kCount], int32_t code) {
  return std::find(codes, codes + kCount, code) != codes + kCount;
}

// The number of values of a tensor, or infinity if it is unknown.
double Values(const TfLiteContext& context, int index) {
  if (index < 0 || static_cast<size_t>(index) >= context.tensors_size) return kUnknown;
  const TfLiteTensor& tensor = context.tensors[index];
  // If a dimension is known only at run time, `dims` has a 1 in its place. The tensor's `dims_signature` marks such
  // dimensions, so it is read instead.
  const bool has_signature = tensor.dims_signature != nullptr && tensor.dims_signature->size > 0;
  return CountKnownValues(has_signature ? tensor.dims_signature : tensor.dims);
}

double Cycles(const TfLiteContext& context, const PlannedNode& planned) {
  const TfLiteIntArray &inputs = *planned.node->inputs, &outputs = *planned.node->outputs;
  const int32_t code = planned.registration->builtin_code;
  const bool is_layer = IsAmong(kLayers, code) && inputs.size >= 2;
  if (!is_layer && !IsAmong(kOthers, code)) return kUnknown;
  if (outputs.size != 1 || inputs.size < 1) return kUnknown;
  const double written = Values(context, outputs.data[0]);
  if (!is_layer) return std::max(written, Values(context, inputs.data[0]));
  const double weights = Values(context, inputs.data[1]);
  if (written == kUnknown || weights == kUnknown) return kUnknown;
  const TfLiteIntArray& output = *context.tensors[outputs.data[0]].dims;
  const int channels = output.size == 0 ? 1 : output.data[output.size - 1];
  return written * weights / channels / kMultiplyAddsPerCycle;
}

}  // namespace

double RemainingCycles(const TfLiteContext& context, const std::vector<PlannedNode>& plan,
                       const std::vector<Claim>& claims) {
  double cycles = 0;
  for (size_t i = 0; i < plan.size(); ++i) {
    if (!claims[i].is_claimed()) cycles += Cycles(context, plan[i]);
  }
  return cycles;
}

}  // namespace litebnn
