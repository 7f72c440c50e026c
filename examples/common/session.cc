#include "common/session.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>

#include "common/error.h"
#include "common/read_file.h"
#include "litebnn/litebnn.h"

#if __has_include("tensorflow/lite/delegates/xnnpack/xnnpack_delegate.h")
#include "tensorflow/lite/delegates/xnnpack/xnnpack_delegate.h"
#endif

// Experimental in the C API's eyes, and exported by every version; the published headers leave it out.
extern "C" void TfLiteInterpreterOptionsAddCustomOp(TfLiteInterpreterOptions* options, const char* name,
                                                    const TfLiteRegistration* registration, int32_t min_version,
                                                    int32_t max_version);

namespace litebnn::examples {
namespace {

// The offsets of the file format have 32 bits, one of them for the sign.
constexpr size_t kLargestModel = (size_t{1} << 31) - 1;

// Sends stderr to nowhere as long as it lives.
class SilentStderr {
 public:
  SilentStderr() : stderr_(dup(STDERR_FILENO)) {
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nowhere, STDERR_FILENO);
    close(nowhere);
  }
  ~SilentStderr() {
    dup2(stderr_, STDERR_FILENO);
    close(stderr_);
  }
  SilentStderr(const SilentStderr&) = delete;
  SilentStderr& operator=(const SilentStderr&) = delete;

 private:
  int stderr_;
};

TfLiteModel* ReadModel(const std::string& bytes) {
  // The runtime writes "The model is not a valid Flatbuffer buffer" to stderr and knows no more.
  const SilentStderr silent;
  return TfLiteModelCreate(bytes.data(), bytes.size());
}

// A function of the library opened as `library`; null where it has none of that name.
template <class Function>
Function* Find(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

#if __has_include("tensorflow/lite/delegates/xnnpack/xnnpack_delegate.h")
using XnnpackOptions = TfLiteXNNPackDelegateOptions;

XnnpackOptions DefaultXnnpackOptions() {
  const auto defaults = Find<XnnpackOptions()>(RTLD_DEFAULT, "TfLiteXNNPackDelegateOptionsDefault");
  return defaults != nullptr ? defaults() : XnnpackOptions();
}
#else
// The published C library comes without this header. Every version of the struct begins so, and zero is what later
// members hold by default.
struct XnnpackOptions {
  int32_t num_threads;
  uint32_t flags;
  char later_members[120];
};

XnnpackOptions DefaultXnnpackOptions() {
  constexpr uint32_t kSignedAndUnsignedInt8 = 1 | 2;
  XnnpackOptions options = {};
  options.flags = kSignedAndUnsignedInt8;
  return options;
}
#endif

}  // namespace

Session::Session(const SessionOptions& options)
    : path_(options.model), model_bytes_(ReadFile(options.model, "model", kLargestModel)) {
  model_.reset(ReadModel(model_bytes_));
  if (!model_) throw Error(Format("%s is no .tflite model, or is cut off", path_.c_str()));

  const std::unique_ptr<TfLiteInterpreterOptions, decltype(&TfLiteInterpreterOptionsDelete)> settings(
      TfLiteInterpreterOptionsCreate(), TfLiteInterpreterOptionsDelete);
  TfLiteInterpreterOptionsSetNumThreads(settings.get(), options.num_threads);
  TfLiteInterpreterOptionsSetErrorReporter(settings.get(), &Session::Report, this);
  if (options.lcompute) {
    size_t count = 0;
    const LitebnnOp* ops = litebnn_ops(&count);
    for (size_t i = 0; i < count; ++i) {
      TfLiteInterpreterOptionsAddCustomOp(settings.get(), ops[i].name, ops[i].registration, 1, 1);
    }
  }
  if (!options.external_delegate.empty()) AddExternalDelegate(options.external_delegate);
  if (options.xnnpack) AddXnnpack(options.num_threads);

  std::vector<TfLiteDelegate*> delegates;
  for (const Delegate& delegate : delegates_) delegates.push_back(delegate.get());
  if (options.profiling) {
    profiler_ = std::make_unique<OpProfiler>(delegates.empty() ? nullptr : delegates.back());
    if (!delegates.empty()) delegates.pop_back();
    delegates.push_back(profiler_->delegate());
  }
  for (TfLiteDelegate* delegate : delegates) TfLiteInterpreterOptionsAddDelegate(settings.get(), delegate);

  interpreter_.reset(TfLiteInterpreterCreate(model_.get(), settings.get()));
  if (!interpreter_) {
    Fail(delegates_.empty() ? "the runtime refuses the model"
                            : "the runtime refuses the model with the delegates that were asked for");
  }
  if (TfLiteInterpreterAllocateTensors(interpreter_.get()) != kTfLiteOk) Fail("the runtime cannot prepare the model");
}

void Session::Invoke() {
  if (TfLiteInterpreterInvoke(interpreter_.get()) != kTfLiteOk) Fail("the model cannot run");
}

void Session::Report(void* session, const char* format, va_list arguments) {
  char message[1024];
  std::vsnprintf(message, sizeof message, format, arguments);
  std::string text = message;
  std::replace(text.begin(), text.end(), '\n', ' ');
  text.erase(text.find_last_not_of(' ') + 1);
  std::string& reported = static_cast<Session*>(session)->reported_;
  reported += (reported.empty() ? "" : "; ") + text;
}

void Session::Fail(const std::string& what) const {
  std::string line = path_ + ": " + what;
  if (!reported_.empty()) line += ": " + reported_;
  const auto reports = [this](const char* text) { return reported_.find(text) != std::string::npos; };
  if (reports("unresolved custom op: Lce")) line += " Add --lcompute 1 for the Lce ops.";
  if (reports("builtin_code out of range")) {
    line += Format(" It needs a newer C library than this one of TensorFlow Lite %s.", TfLiteVersion());
  }
  throw Error(line);
}

void Session::AddXnnpack(int num_threads) {
  const auto create = Find<TfLiteDelegate*(const XnnpackOptions*)>(RTLD_DEFAULT, "TfLiteXNNPackDelegateCreate");
  const auto destroy = Find<void(TfLiteDelegate*)>(RTLD_DEFAULT, "TfLiteXNNPackDelegateDelete");
  if (create == nullptr || destroy == nullptr) throw Error("libtensorflowlite_c.so was built without XNNPACK");
  XnnpackOptions options = DefaultXnnpackOptions();
  options.num_threads = num_threads;
  delegates_.emplace_back(create(&options), destroy);
  if (delegates_.back() == nullptr) throw Error("XNNPACK does not run on this CPU");
}

void Session::AddExternalDelegate(const std::string& path) {
  using Create = TfLiteDelegate*(const char* const*, const char* const*, size_t, void (*)(const char*));
  // Never closed: the runtime and the delegate's threads may call into it until the program ends.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw Error(Format("cannot load the delegate %s: %s", path.c_str(), dlerror()));
  const auto create = Find<Create>(library, "tflite_plugin_create_delegate");
  const auto destroy = Find<void(TfLiteDelegate*)>(library, "tflite_plugin_destroy_delegate");
  if (create == nullptr || destroy == nullptr) {
    throw Error(Format("%s is no delegate library: it exports no tflite_plugin_create_delegate", path.c_str()));
  }
  static std::string reason;  // a report comes without user data
  const auto report = [](const char* message) { reason += Format(": %s", message); };
  delegates_.emplace_back(create(nullptr, nullptr, 0, report), destroy);
  if (delegates_.back() == nullptr) {
    throw Error(Format("the delegate %s cannot be made%s", path.c_str(), reason.c_str()));
  }
}

std::string Describe(const TfLiteTensor* tensor) {
  std::string text = TfLiteTypeGetName(TfLiteTensorType(tensor));
  std::transform(text.begin(), text.end(), text.begin(), [](char c) { return static_cast<char>(std::tolower(c)); });
  text += " [";
  for (int i = 0; i < TfLiteTensorNumDims(tensor); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(TfLiteTensorDim(tensor, i));
  }
  return text + "]";
}

}  // namespace litebnn::examples
