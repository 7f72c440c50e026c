// The names and values in a model file for the custom ops, which docs/ops.md documents. The Python counterpart is
// converter/litebnn/contract.py; tests/ops/test_contract.py checks that both agree. The code is C++11, for
// microcontrollers.
#pragma once

#include <cstdint>

namespace litebnn {
namespace contract {

constexpr char kQuantize[] = "LceQuantize";
constexpr char kDequantize[] = "LceDequantize";
constexpr char kBMaxPool2d[] = "LceBMaxPool2d";
constexpr char kBconv2d[] = "LceBconv2d";
constexpr char kUnpackWeights[] = "LitebnnUnpackWeights";

constexpr char kChannelsIn[] = "channels_in";
constexpr char kDilationHeightFactor[] = "dilation_height_factor";
constexpr char kDilationWidthFactor[] = "dilation_width_factor";
constexpr char kFilterHeight[] = "filter_height";
constexpr char kFilterWidth[] = "filter_width";
constexpr char kFusedActivationFunction[] = "fused_activation_function";
constexpr char kPadBottom[] = "pad_bottom";
constexpr char kPadLeft[] = "pad_left";
constexpr char kPadRight[] = "pad_right";
constexpr char kPadTop[] = "pad_top";
constexpr char kPadValues[] = "pad_values";
constexpr char kPadding[] = "padding";
constexpr char kStrideHeight[] = "stride_height";
constexpr char kStrideWidth[] = "stride_width";

constexpr int32_t kPaddingSame = 0;
constexpr int32_t kPaddingValid = 1;
constexpr int32_t kPadValuesZero = 0;
constexpr int32_t kPadValuesOne = 1;
constexpr int32_t kActivationNone = 0;
constexpr int32_t kActivationRelu = 1;
constexpr int32_t kActivationReluN1To1 = 2;
constexpr int32_t kActivationRelu6 = 3;

}  // namespace contract
}  // namespace litebnn
