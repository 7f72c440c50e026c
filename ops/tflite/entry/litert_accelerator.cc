#include "tflite/entry/litert_accelerator.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "litebnn/litebnn.h"
#include "tflite/entry/defaults.h"

namespace litebnn {
namespace {

// The identifier of the options for litebnn that belong to a model. Options that belong to an environment are in a file
// in its folder of accelerators.
constexpr const char* kOptionsIdentifier = "litebnn";
constexpr const char* kOptionsFile = "/litebnn.options";
// The identifier of the options that XNNPACK reads.
constexpr const char* kCpuOptionsIdentifier = "xnnpack";

LiteRtStatus GetName(LiteRtAcceleratorConst, const char** name) {
  *name = "litebnn";
  return kLiteRtStatusOk;
}

LiteRtStatus GetVersion(LiteRtAcceleratorConst, LiteRtApiVersion* version) {
  *version = {};
  std::sscanf(litebnn_version(), "%d.%d.%d", &version->major, &version->minor, &version->patch);
  return kLiteRtStatusOk;
}

LiteRtStatus GetHardwareSupport(LiteRtAcceleratorConst, int* supported_hardware) {
  *supported_hardware = kLiteRtHwAcceleratorCpu;
  return kLiteRtStatusOk;
}

// If this function answers true, the runtime may skip the accelerator for a model that asks for other hardware.
LiteRtStatus IsResponsibleForJitCompilation(LiteRtAcceleratorConst, bool* does_jit_compilation) {
  *does_jit_compilation = true;
  return kLiteRtStatusOk;
}

std::string ReadFile(const std::string& path) {
  std::string text;
  std::FILE* file = std::fopen(path.c_str(), "r");
  if (file == nullptr) return text;
  char block[256];
  while (const size_t size = std::fread(block, 1, sizeof(block), file)) text.append(block, size);
  std::fclose(file);
  return text;
}

// Returns the text under `identifier` in the model's options, or null.
const char* FindOpaqueOptions(const LiteRtRuntimeContext& runtime, LiteRtOptions options, const char* identifier) {
  LiteRtOpaqueOptions opaque_options = nullptr;
  void* data = nullptr;
  if (options == nullptr || runtime.get_opaque_options(options, &opaque_options) != kLiteRtStatusOk ||
      opaque_options == nullptr ||
      runtime.find_opaque_options_data(opaque_options, identifier, &data) != kLiteRtStatusOk) {
    return nullptr;
  }
  return static_cast<const char*>(data);
}

// Returns the model's number of threads as an option of the delegate. LiteRT 2.2 and 2.3 do not pass this number to
// delegates. Therefore the function reads the text that XNNPACK reads: a line such as "num_threads = 4" in the model's
// CPU options. It returns an empty text if there is no such line.
std::string FindNumThreads(const LiteRtRuntimeContext& runtime, LiteRtOptions options) {
  const char* text = FindOpaqueOptions(runtime, options, kCpuOptionsIdentifier);
  const char* line = text == nullptr ? nullptr : std::strstr(text, "num_threads");
  int num_threads = 0;
  if (line == nullptr || std::sscanf(line, "num_threads = %d", &num_threads) != 1 || num_threads < 1) return "";
  return "num_threads=" + std::to_string(std::min(num_threads, kMaxThreads));
}

// Returns the model's options if it has any, otherwise the environment's, as "key=value" words.
std::string FindOptions(const LiteRtRuntimeContext& runtime, LiteRtEnvironment environment, LiteRtOptions options) {
  // If a key occurs several times, the delegate takes its last value.
  const std::string num_threads = FindNumThreads(runtime, options) + " ";
  if (const char* text = FindOpaqueOptions(runtime, options, kOptionsIdentifier)) return num_threads + text;
  const std::string folder = FindRuntimeFolder(runtime, environment);
  return folder.empty() ? num_threads : num_threads + ReadFile(folder + kOptionsFile);
}

// The options as two lists, made from a text of "key=value" words.
struct OptionList {
  explicit OptionList(const std::string& text) {
    constexpr const char* kSpace = " \t\r\n";
    for (size_t end = 0, start; (start = text.find_first_not_of(kSpace, end)) != std::string::npos;) {
      end = std::min(text.find_first_of(kSpace, start), text.size());
      const std::string word = text.substr(start, end - start);
      const size_t sign = std::min(word.find('='), word.size());
      keys.push_back(word.substr(0, sign));
      values.push_back(word.substr(std::min(sign + 1, word.size())));
    }
  }
  std::vector<std::string> keys, values;
};

std::vector<const char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<const char*> pointers;
  for (const std::string& string : strings) pointers.push_back(string.c_str());
  return pointers;
}

void PrintError(const char* message) { std::fprintf(stderr, "%s\n", message); }

// Returns a description of what is wrong with the context, or an empty string if it has all required functions.
std::string CheckContext(const LiteRtRuntimeContext* context) {
  if (context == nullptr) return "LiteRT gives no runtime context";
  const LiteRtAbiHeader& header = context->abi_header;
  if (header.major_version != 1 || header.struct_size < sizeof(LiteRtRuntimeContext)) {
    return "LiteRT's runtime context is version " + std::to_string(header.major_version) + "." +
           std::to_string(header.minor_version) + " of " + std::to_string(header.struct_size) +
           " bytes, expected version 1 of at least " + std::to_string(sizeof(LiteRtRuntimeContext));
  }
  if (context->get_opaque_options == nullptr || context->find_opaque_options_data == nullptr ||
      context->get_environment_options == nullptr || context->get_environment_options_value == nullptr ||
      context->wrap_delegate == nullptr) {
    return "LiteRT's runtime context lacks functions";
  }
  return "";
}

LiteRtStatus CreateLiteRtDelegate(LiteRtRuntimeContext* context, LiteRtEnvironment environment, LiteRtAcceleratorConst,
                                  LiteRtOptions options, LiteRtDelegateWrapper* wrapper) {
  return PrintOutOfMemory([&] {
    const std::string problem = CheckContext(context);
    if (problem.empty()) return WrapNewDelegate(*context, environment, options, wrapper);
    PrintLiteRtError(problem + ": this LiteRT is unknown, " + kUseInterpreter);
    return kLiteRtStatusErrorWrongVersion;
  });
}

}  // namespace

void PrintLiteRtError(const std::string& problem) { PrintError(("litebnn: " + problem).c_str()); }

std::string FindRuntimeFolder(const LiteRtRuntimeContext& runtime, LiteRtEnvironment environment) {
  LiteRtEnvironmentOptions options = nullptr;
  LiteRtAny folder = {};
  const bool found = environment != nullptr &&
                     runtime.get_environment_options(environment, &options) == kLiteRtStatusOk &&
                     runtime.get_environment_options_value(options, kLiteRtEnvOptionTagRuntimeLibraryDir, &folder) ==
                         kLiteRtStatusOk &&
                     folder.type == kLiteRtAnyTypeString && folder.str_value != nullptr;
  return found ? folder.str_value : "";
}

LiteRtStatus WrapNewDelegate(const LiteRtRuntimeContext& runtime, LiteRtEnvironment environment, LiteRtOptions options,
                             LiteRtDelegateWrapper* wrapper) {
  const OptionList list(FindOptions(runtime, environment, options));
  ::TfLiteDelegate* delegate = tflite_plugin_create_delegate(Pointers(list.keys).data(), Pointers(list.values).data(),
                                                             list.keys.size(), PrintError);
  if (delegate == nullptr) return kLiteRtStatusErrorInvalidArgument;
  const LiteRtStatus status = runtime.wrap_delegate(delegate, tflite_plugin_destroy_delegate, wrapper);
  if (status != kLiteRtStatusOk) tflite_plugin_destroy_delegate(delegate);
  return status;
}

}  // namespace litebnn

const litebnn::LiteRtAcceleratorDef LiteRtAcceleratorImpl = {
    {sizeof(litebnn::LiteRtAcceleratorDef), 1, 0, 0},
    litebnn::GetName,
    litebnn::GetVersion,
    litebnn::GetHardwareSupport,
    litebnn::IsResponsibleForJitCompilation,
    litebnn::CreateLiteRtDelegate,
    nullptr,
    nullptr,
    {{sizeof(litebnn::LiteRtCustomTensorBufferHandlersDef), 1, 0, 0}, {}, 0, 0, 0, {}},
};
