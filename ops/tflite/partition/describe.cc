// What the delegate does with a model's nodes, as JSON.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "tflite/partition/claim.h"
#include "tflite/partition/stages.h"

namespace litebnn {
namespace {

// The longest name that is not cut. Any number of nodes may share a name, so long ones would make the text huge.
constexpr size_t kMaxName = 100;

// A JSON string. A model's names may hold any bytes, so all but printable ASCII is escaped.
std::string Quote(const char* text) {
  std::string quoted = "\"";
  for (size_t i = 0; i < kMaxName && text[i] != '\0'; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= ' ' && byte <= '~' && byte != '"' && byte != '\\') {
      quoted += text[i];
    } else {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", byte);
      quoted += escape;
    }
  }
  return quoted + '"';
}

// Joins describe(element) of all elements to a JSON array.
template <typename Elements, typename Describe>
std::string Array(const Elements& elements, Describe describe) {
  std::string text;
  for (const auto& element : elements) text += (text.empty() ? "" : ", ") + describe(element);
  return "[" + text + "]";
}

std::string DescribeStep(const Step& step) {
  std::vector<StepNode> nodes = step.nodes;
  std::sort(nodes.begin(), nodes.end(), [](const StepNode& a, const StepNode& b) { return a.index < b.index; });
  return "{\"op\": " + Quote(step.type->name) + ", \"nodes\": " +
         Array(nodes,
               [](const StepNode& node) {
                 return "{\"index\": " + std::to_string(node.index) + ", \"op\": " + Quote(node.type->name) + "}";
               }) +
         "}";
}

}  // namespace

std::string DescribeSteps(const std::vector<Step>& steps) { return Array(steps, DescribeStep); }

std::string DescribeLeft(const std::vector<PlannedNode>& plan, const std::vector<Claim>& claims) {
  std::vector<size_t> left;
  for (size_t i = 0; i < plan.size(); ++i) {
    if (!claims[i].is_claimed()) left.push_back(i);
  }
  return Array(left, [&](size_t i) {
    const TfLiteRegistration& op = *plan[i].registration;
    return "{\"index\": " + std::to_string(plan[i].index) + ", \"builtin_code\": " + std::to_string(op.builtin_code) +
           (op.custom_name == nullptr ? "" : ", \"custom_name\": " + Quote(op.custom_name)) +
           ", \"reason\": " + Quote(claims[i].reason) + "}";
  });
}

}  // namespace litebnn
