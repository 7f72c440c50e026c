// Fuzzes the delegate with any text as its options. The delegate must run, or report one message.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "tests/support/delegates.h"
#include "tests/support/graphs.h"

namespace {

std::vector<std::string> messages;

// Splits `text` at each occurrence of `end`.
std::vector<std::string> Split(const std::string& text, char end) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t stop = std::min(text.find(end, begin), text.size());
    parts.push_back(text.substr(begin, stop - begin));
    begin = stop + 1;
  }
  return parts;
}

// Prepares the graph's custom ops without a delegate. They read the environment variable LITEBNN_ISA, which the fuzzer
// has set. Aborts if an op fails without a message.
void CheckCustomOp(const litebnn::testing::Graph& graph) {
  litebnn::testing::FakeRuntime runtime(graph);
  if (!runtime.Allocate() && runtime.errors().empty()) std::abort();
}

}  // namespace

// The first line of the input is the environment variable for the ISA. Each other line is an option, with a space
// between key and value.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace litebnn::testing;
  const std::vector<std::string> lines = Split(std::string(data, data + size), '\n');
  std::vector<std::string> words;
  for (size_t i = 1; i < lines.size(); ++i) {
    const size_t space = std::min(lines[i].find(' '), lines[i].size());
    words.push_back(lines[i].substr(0, space));
    words.push_back(lines[i].substr(std::min(space + 1, lines[i].size())));
  }
  std::vector<const char*> keys, values;
  for (size_t i = 0; i < words.size(); i += 2) {
    keys.push_back(words[i].c_str());
    values.push_back(words[i + 1].c_str());
  }
  setenv("LITEBNN_ISA", lines.empty() ? "" : lines[0].c_str(), 1);
  messages.clear();
  const DelegatePointer delegate(tflite_plugin_create_delegate(
      keys.data(), values.data(), keys.size(), [](const char* message) { messages.push_back(message); }));
  if (messages.size() != (delegate == nullptr ? 1 : 0)) std::abort();
  const Graph graph = QuantizeGraph({1, 3, 40}, litebnn::kTfLiteInt8);
  CheckCustomOp(graph);
  if (delegate == nullptr) return 0;
  FakeRuntime runtime(graph, delegate.get(), 1);
  if (!runtime.Allocate() || !runtime.Invoke()) std::abort();
  return 0;
}
