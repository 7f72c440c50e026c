#include "common/json.h"

#include <cmath>

#include "common/error.h"

namespace litebnn::programs {

Json::Json(const std::string& text) {
  text_ = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text_ += {'\\', c};
    } else if (byte < 0x20 || byte > 0x7e) {
      // A tensor's name may contain any bytes. Bytes outside ASCII become the code points of the same numbers.
      text_ += Format("\\u%04x", byte);
    } else {
      text_ += c;
    }
  }
  text_ += '"';
}

Json::Json(double number) : text_(std::isfinite(number) ? Format("%.15g", number) : "null") {}

Json Json::Array(const std::vector<Json>& values) {
  Json array;
  for (const Json& value : values) array.text_ += (array.text_.empty() ? "" : ", ") + value.text_;
  array.text_ = "[" + array.text_ + "]";
  return array;
}

Json Json::Object(const std::vector<std::pair<std::string, Json>>& members) {
  Json object;
  for (const auto& [name, value] : members) {
    object.text_ += (object.text_.empty() ? "" : ", ") + Json(name).text_ + ": " + value.text_;
  }
  object.text_ = "{" + object.text_ + "}";
  return object;
}

}  // namespace litebnn::programs
