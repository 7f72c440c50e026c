// The runtime's external delegate interface, which tflite.load_delegate and TfLiteExternalDelegateCreate call.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "litebnn/litebnn.h"
#include "tflite/entry/defaults.h"
#include "tflite/entry/delegate.h"
#include "tflite/entry/out_of_memory.h"

namespace litebnn {
namespace {

// Parses the value of an option. Returns a description of what is wrong with the value, or an empty string.
using OptionParser = std::string (*)(const char* value, DelegateOptions* options);

std::string Unexpected(const char* expected, const char* found) {
  return std::string("expected ") + expected + ", found '" + found + "'";
}

bool ParseInteger(const char* text, long minimum, long maximum, long* value) {
  char* end;
  errno = 0;
  *value = std::strtol(text, &end, 10);
  return errno == 0 && end != text && *end == '\0' && *value >= minimum && *value <= maximum;
}

std::string ParseNumThreads(const char* text, DelegateOptions* options) {
  long value;
  if (!ParseInteger(text, 1, kMaxThreads, &value)) {
    return Unexpected(("an integer from 1 to " + std::to_string(kMaxThreads)).c_str(), text);
  }
  options->num_threads = static_cast<int>(value);
  return "";
}

std::string ParseIsa(const char* text, DelegateOptions* options) {
  options->isa = FindIsa(text);
  if (options->isa != nullptr) return "";
  return Unexpected((std::string("one of ") + AvailableIsas()).c_str(), text);
}

template <bool DelegateOptions::* kSwitch>
std::string ParseSwitch(const char* text, DelegateOptions* options) {
  long value;
  if (!ParseInteger(text, 0, 1, &value)) return Unexpected("0 or 1", text);
  options->*kSwitch = value == 1;
  return "";
}

struct OptionType {
  const char* name;
  OptionParser parse;
};
constexpr OptionType kOptions[] = {{"num_threads", ParseNumThreads},
                                   {"isa", ParseIsa},
                                   {"verbose", ParseSwitch<&DelegateOptions::verbose>},
                                   {"describe", ParseSwitch<&DelegateOptions::describe>}};

std::string ParseOption(const char* key, const char* value, DelegateOptions* options) {
  if (key == nullptr || value == nullptr) return "option: expected a key and a value, found none";
  std::string known;
  for (const OptionType& option : kOptions) {
    if (std::strcmp(key, option.name) == 0) {
      const std::string problem = option.parse(value, options);
      return problem.empty() ? "" : std::string("option ") + key + ": " + problem;
    }
    known += (known.empty() ? "" : ", ") + std::string(option.name);
  }
  return std::string("unknown option '") + key + "': expected one of " + known;
}

// Creates a delegate. Returns null after setting `*problem`.
Delegate* CreateDelegate(const char* const* keys, const char* const* values, size_t count, std::string* problem) {
  DelegateOptions options;
  for (size_t i = 0; i < count && problem->empty(); ++i) *problem = ParseOption(keys[i], values[i], &options);
  if (!problem->empty()) return nullptr;
  if (options.isa == nullptr) options.isa = DefaultIsa(problem);
  if (options.isa == nullptr) return nullptr;
  return new Delegate(options);
}

// Creates a delegate. Returns null after reporting the error.
Delegate* CreateOrReport(const char* const* keys, const char* const* values, size_t count,
                         void (*report_error)(const char* message)) {
  std::string problem;
  Delegate* delegate = CreateDelegate(keys, values, count, &problem);
  if (delegate == nullptr) report_error(("litebnn: " + problem).c_str());
  return delegate;
}

// Prints the error to stderr for loaders without an error callback, such as TfLiteExternalDelegateCreate, which print
// nothing themselves.
void PrintForLoader(const char* message) { std::fprintf(stderr, "%s\n", message); }

}  // namespace
}  // namespace litebnn

// The casts convert pointers between two declarations of TfLiteDelegate: that of the public header, which has no
// members, and litebnn's own.
struct TfLiteDelegate* tflite_plugin_create_delegate(const char* const* keys, const char* const* values, size_t count,
                                                     void (*report_error)(const char* message)) {
  using namespace litebnn;
  const auto report = report_error == nullptr ? PrintForLoader : report_error;
  Delegate* delegate = CatchOutOfMemory([=] { return CreateOrReport(keys, values, count, report); },
                                        [report]() -> Delegate* {
                                          report("litebnn: out of memory");
                                          return nullptr;
                                        });
  return delegate == nullptr ? nullptr : reinterpret_cast<struct ::TfLiteDelegate*>(delegate->c_delegate());
}

void tflite_plugin_destroy_delegate(struct TfLiteDelegate* delegate) {
  if (delegate == nullptr) return;
  delete litebnn::Delegate::FromC(reinterpret_cast<litebnn::TfLiteDelegate*>(delegate));
}

const char* litebnn_describe(struct TfLiteDelegate* delegate) {
  using namespace litebnn;
  if (delegate == nullptr) return nullptr;
  return CatchOutOfMemory(
      [=] { return Delegate::FromC(reinterpret_cast<litebnn::TfLiteDelegate*>(delegate))->Describe(); },
      []() -> const char* { return nullptr; });
}
