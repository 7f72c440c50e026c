// Reads the options of the custom ops, for the delegate and for TensorFlow Lite Micro. docs/ops.md documents them. The
// code is C++11 without a .cc file, for microcontrollers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "tflite/ops/contract.h"
#include "tflite/runtime/flexbuffer_map.h"

namespace litebnn {

// Reads integers, and keeps the problem of the first one that is refused.
class OptionReader {
 public:
  // The buffer is not copied and must outlive the reader.
  OptionReader(const uint8_t* data, size_t size) : map_(data, size), size_(size) {}

  // What is wrong with the option that was refused, such as "option padding: expected an integer from 0 to 1, found
  // none".
  const char* problem() const { return problem_; }

  bool Has(const char* name) const {
    int64_t value;
    return map_.Find(name, &value) != FlexbufferMap::Lookup::kMissing;
  }

  bool Read(const char* name, int32_t least, int32_t most, int32_t* value) {
    int64_t found = 0;
    const FlexbufferMap::Lookup lookup = map_.Find(name, &found);
    if (lookup == FlexbufferMap::Lookup::kFound && found >= least && found <= most) {
      *value = static_cast<int32_t>(found);
      return true;
    }
    end_ = 0;
    Append("option ");
    Append(name);
    if (lookup == FlexbufferMap::Lookup::kMalformed) {
      Append(": expected a FlexBuffer map of integers, found ");
      Append(static_cast<int64_t>(size_));
      Append(" bytes that are none");
      return false;
    }
    Append(": expected an integer from ");
    Append(least);
    Append(" to ");
    Append(most);
    Append(", found ");
    if (lookup == FlexbufferMap::Lookup::kFound) {
      Append(found);
    } else {
      Append(lookup == FlexbufferMap::Lookup::kMissing ? "none" : "a value of another type");
    }
    return false;
  }

 private:
  // Microcontrollers may have no printf.
  void Append(const char* text) {
    while (*text != '\0' && end_ + 1 < sizeof(problem_)) problem_[end_++] = *text++;
    problem_[end_] = '\0';
  }
  void Append(int64_t number) {
    char digits[21] = {};
    char* first = digits + sizeof(digits) - 1;
    // Negative, as INT64_MIN has no positive counterpart.
    int64_t rest = number < 0 ? number : -number;
    do {
      *--first = static_cast<char>('0' - rest % 10);
      rest /= 10;
    } while (rest != 0);
    if (number < 0) Append("-");
    Append(first);
  }

  const FlexbufferMap map_;
  const size_t size_;
  size_t end_ = 0;
  char problem_[160] = {};
};

struct Bconv2dOptions {
  int32_t channels_in, stride_height, stride_width, dilation_height_factor, dilation_width_factor;
  int32_t fused_activation_function, pad_values, padding;
  bool has_explicit_padding;  // then `padding` is VALID
  int32_t pad_top, pad_bottom, pad_left, pad_right;
};

struct BMaxPool2dOptions {
  int32_t padding, stride_height, stride_width, filter_height, filter_width;
};

// The functions below return false if the reader has refused an option.

// A model with explicit padding has separate options for it and no option `padding`. A reader that knows only SAME and
// VALID then reports the missing option.
inline bool ReadPadding(OptionReader* reader, Bconv2dOptions* options) {
  constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
  options->has_explicit_padding = !reader->Has(contract::kPadding) && reader->Has(contract::kPadTop);
  options->pad_top = options->pad_bottom = options->pad_left = options->pad_right = 0;
  if (!options->has_explicit_padding) {
    return reader->Read(contract::kPadding, contract::kPaddingSame, contract::kPaddingValid, &options->padding);
  }
  options->padding = contract::kPaddingValid;
  return reader->Read(contract::kPadTop, 0, kMax, &options->pad_top) &&
         reader->Read(contract::kPadBottom, 0, kMax, &options->pad_bottom) &&
         reader->Read(contract::kPadLeft, 0, kMax, &options->pad_left) &&
         reader->Read(contract::kPadRight, 0, kMax, &options->pad_right);
}

inline bool ReadOptions(OptionReader* reader, Bconv2dOptions* options) {
  constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
  return reader->Read(contract::kChannelsIn, 1, kMax, &options->channels_in) &&
         reader->Read(contract::kDilationHeightFactor, 1, kMax, &options->dilation_height_factor) &&
         reader->Read(contract::kDilationWidthFactor, 1, kMax, &options->dilation_width_factor) &&
         reader->Read(contract::kFusedActivationFunction, contract::kActivationNone, contract::kActivationRelu6,
                      &options->fused_activation_function) &&
         reader->Read(contract::kPadValues, contract::kPadValuesZero, contract::kPadValuesOne, &options->pad_values) &&
         ReadPadding(reader, options) && reader->Read(contract::kStrideHeight, 1, kMax, &options->stride_height) &&
         reader->Read(contract::kStrideWidth, 1, kMax, &options->stride_width);
}

inline bool ReadOptions(OptionReader* reader, BMaxPool2dOptions* options) {
  constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
  return reader->Read(contract::kPadding, contract::kPaddingSame, contract::kPaddingValid, &options->padding) &&
         reader->Read(contract::kStrideWidth, 1, kMax, &options->stride_width) &&
         reader->Read(contract::kStrideHeight, 1, kMax, &options->stride_height) &&
         reader->Read(contract::kFilterWidth, 1, kMax, &options->filter_width) &&
         reader->Read(contract::kFilterHeight, 1, kMax, &options->filter_height);
}

}  // namespace litebnn
