// What the delegate does with a model's nodes, as JSON.
#include <cstdio>
#include <string>
#include <vector>

#include "tflite/partition/claim.h"
#include "tflite/partition/stages.h"

namespace litebnn {
namespace {

// The longest name that is not cut. Any number of nodes may share a name, so long ones would make the text huge.
constexpr size_t kMaxName = 100;

// Appends a JSON string. A model's names may hold any bytes, so all but printable ASCII is escaped.
void Quote(const char* name, std::string* text) {
  *text += '"';
  for (size_t i = 0; i < kMaxName && name[i] != '\0'; ++i) {
    const auto byte = static_cast<unsigned char>(name[i]);
    if (byte >= ' ' && byte <= '~' && byte != '"' && byte != '\\') {
      *text += name[i];
    } else {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", byte);
      *text += escape;
    }
  }
  *text += '"';
}

void BeginNode(int index, std::string* text) {
  char number[16];
  std::snprintf(number, sizeof(number), "%d", index);
  BeginElement(text);
  *text += "{\"index\": ";
  *text += number;
}

}  // namespace

void BeginElement(std::string* text) {
  if (text->back() != '[') *text += ", ";
}

void DescribeSteps(const std::vector<Step>& steps, const NodeTypes& types, std::string* text) {
  for (const Step& step : steps) {
    BeginElement(text);
    *text += "{\"op\": ";
    Quote(step.type->name, text);
    *text += ", \"nodes\": [";
    for (const int node : step.nodes) {
      BeginNode(node, text);
      *text += ", \"op\": ";
      Quote(types[static_cast<size_t>(node)]->name, text);
      *text += '}';
    }
    *text += "]}";
  }
}

void DescribeLeft(const std::vector<PlannedNode>& plan, const std::vector<Claim>& claims, std::string* text) {
  for (size_t i = 0; i < plan.size(); ++i) {
    if (claims[i].is_claimed()) continue;
    const TfLiteRegistration& op = *plan[i].registration;
    char code[40];
    std::snprintf(code, sizeof(code), ", \"builtin_code\": %d", static_cast<int>(op.builtin_code));
    BeginNode(plan[i].index, text);
    *text += code;
    if (op.custom_name != nullptr) {
      *text += ", \"custom_name\": ";
      Quote(op.custom_name, text);
    }
    *text += ", \"reason\": ";
    Quote(claims[i].reason, text);
    *text += '}';
  }
}

}  // namespace litebnn
