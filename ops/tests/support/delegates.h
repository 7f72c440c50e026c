// A smart pointer that owns a delegate.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "litebnn/litebnn.h"

namespace litebnn::testing {

struct DestroyDelegate {
  void operator()(::TfLiteDelegate* delegate) const { tflite_plugin_destroy_delegate(delegate); }
};
using DelegatePointer = std::unique_ptr<::TfLiteDelegate, DestroyDelegate>;

inline DelegatePointer MakeDelegate(const std::vector<std::pair<const char*, const char*>>& options = {}) {
  std::vector<const char*> keys, values;
  for (const auto& [key, value] : options) {
    keys.push_back(key);
    values.push_back(value);
  }
  return DelegatePointer(tflite_plugin_create_delegate(keys.data(), values.data(), keys.size(), nullptr));
}

}  // namespace litebnn::testing
