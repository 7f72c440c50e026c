#pragma once

#include <string>
#include <utility>
#include <vector>

namespace litebnn::programs {

// A JSON value, stored as its JSON text.
class Json {
 public:
  Json(const std::string& text);
  Json(const char* text) : Json(std::string(text)) {}
  Json(double number);
  Json(int number) : Json(static_cast<double>(number)) {}
  Json(bool value) : text_(value ? "true" : "false") {}

  static Json Array(const std::vector<Json>& values);
  static Json Object(const std::vector<std::pair<std::string, Json>>& members);

  const std::string& text() const { return text_; }

 private:
  Json() = default;

  std::string text_;
};

}  // namespace litebnn::programs
