// Sessions that run models on TensorFlow Lite's C library, for boards for which no LiteRT is published.
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <vector>

#include "common/delegates.h"
#include "common/error.h"
#include "common/op_profiler.h"
#include "common/session.h"
#include "kernels/platform/loaded_library.h"
#include "tensorflow/lite/c/c_api.h"

#if __has_include("tensorflow/lite/delegates/xnnpack/xnnpack_delegate.h")
#include "tensorflow/lite/delegates/xnnpack/xnnpack_delegate.h"
#endif

namespace litebnn::programs {
namespace {

// Finds a function of the library by its name; null if the library has no function of that name.
template <class Function>
Function* Find(const char* name) {
  return reinterpret_cast<Function*>(FindSymbol(nullptr, name));
}

#if __has_include("tensorflow/lite/delegates/xnnpack/xnnpack_delegate.h")
using XnnpackOptions = TfLiteXNNPackDelegateOptions;

XnnpackOptions DefaultXnnpackOptions() {
  const auto defaults = Find<XnnpackOptions()>("TfLiteXNNPackDelegateOptionsDefault");
  return defaults != nullptr ? defaults() : XnnpackOptions();
}
#else
// Some distributions of the library lack XNNPACK's header. This struct replaces it: every version begins with these
// members, and zero is the default of all later members.
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

Delegate Xnnpack(int num_threads) {
  const auto create = Find<::TfLiteDelegate*(const XnnpackOptions*)>("TfLiteXNNPackDelegateCreate");
  const auto destroy = Find<void(::TfLiteDelegate*)>("TfLiteXNNPackDelegateDelete");
  if (create == nullptr || destroy == nullptr) throw Error("libtensorflowlite_c.so was built without XNNPACK");
  XnnpackOptions options = DefaultXnnpackOptions();
  options.num_threads = num_threads;
  Delegate delegate(create(&options), destroy);
  if (delegate == nullptr) throw Error("XNNPACK does not run on this CPU");
  return delegate;
}

Tensor View(const ::TfLiteTensor* tensor) {
  const ::TfLiteQuantizationParams params = TfLiteTensorQuantizationParams(tensor);
  Tensor view = {TfLiteTensorName(tensor),
                 static_cast<ElementType>(TfLiteTensorType(tensor)),
                 {},
                 params.scale,
                 params.zero_point};
  for (int i = 0; i < TfLiteTensorNumDims(tensor); ++i) view.shape.push_back(TfLiteTensorDim(tensor, i));
  return view;
}

class TfLiteSession final : public Session {
 public:
  explicit TfLiteSession(const SessionOptions& options);

  std::vector<Tensor> inputs() const override {
    std::vector<Tensor> tensors;
    const int count = TfLiteInterpreterGetInputTensorCount(interpreter_.get());
    for (int i = 0; i < count; ++i) tensors.push_back(View(TfLiteInterpreterGetInputTensor(interpreter_.get(), i)));
    return tensors;
  }
  std::vector<Tensor> outputs() const override {
    std::vector<Tensor> tensors;
    const int count = TfLiteInterpreterGetOutputTensorCount(interpreter_.get());
    for (int i = 0; i < count; ++i) tensors.push_back(View(TfLiteInterpreterGetOutputTensor(interpreter_.get(), i)));
    return tensors;
  }
  size_t InputSize(size_t index) const override { return TfLiteTensorByteSize(Input(index)); }
  void FillInput(size_t index, const void* data) override {
    if (TfLiteTensorCopyFromBuffer(Input(index), data, InputSize(index)) == ::kTfLiteOk) return;
    throw ModelError(options_.model, Format("cannot fill the input %s", TfLiteTensorName(Input(index))), reported_);
  }
  size_t OutputSize(size_t index) const override { return TfLiteTensorByteSize(Output(index)); }
  const void* OutputData(size_t index) override { return TfLiteTensorData(Output(index)); }
  double Invoke() override;
  std::vector<OpTime> op_times() override { return profiler_ ? profiler_->Times() : std::vector<OpTime>(); }
  void ResetOpTimes() override {
    if (profiler_) profiler_->Reset();
  }

 private:
  void MakeInterpreter();
  void ResetVariables();
  ::TfLiteTensor* Input(size_t index) const {
    return TfLiteInterpreterGetInputTensor(interpreter_.get(), static_cast<int>(index));
  }
  const ::TfLiteTensor* Output(size_t index) const {
    return TfLiteInterpreterGetOutputTensor(interpreter_.get(), static_cast<int>(index));
  }
  static void Report(void* session, const char* format, va_list arguments);

  // The interpreter is declared last, because it uses the members before it and must be destroyed before they are.
  SessionOptions options_;
  std::string model_bytes_;
  std::string reported_;
  ObservedGraphs graphs_;
  bool has_run_ = false;
  std::vector<Delegate> delegates_;
  std::unique_ptr<OpProfiler> profiler_;
  std::unique_ptr<TfLiteModel, decltype(&TfLiteModelDelete)> model_{nullptr, TfLiteModelDelete};
  std::unique_ptr<TfLiteInterpreterOptions, decltype(&TfLiteInterpreterOptionsDelete)> settings_{
      nullptr, TfLiteInterpreterOptionsDelete};
  std::unique_ptr<TfLiteInterpreter, decltype(&TfLiteInterpreterDelete)> interpreter_{nullptr, TfLiteInterpreterDelete};
};

TfLiteSession::TfLiteSession(const SessionOptions& options)
    : options_(options), model_bytes_(ReadModel(options.model)), delegates_(MakeDelegates(options)) {
  {
    // While the model is loaded, this object hides the runtime's message "The model is not a valid Flatbuffer buffer".
    // The program reports the error by NoModel.
    const CaughtStderr silent;
    model_.reset(TfLiteModelCreate(model_bytes_.data(), model_bytes_.size()));
  }
  if (!model_) throw NoModel(options_.model);

  settings_.reset(TfLiteInterpreterOptionsCreate());
  TfLiteInterpreterOptionsSetNumThreads(settings_.get(), options.num_threads);
  TfLiteInterpreterOptionsSetErrorReporter(settings_.get(), &TfLiteSession::Report, this);
  delegates_.insert(delegates_.begin(), ObservingDelegate(&graphs_));
  if (options.xnnpack) delegates_.push_back(Xnnpack(options.num_threads));
  std::vector<::TfLiteDelegate*> delegates;
  for (const Delegate& delegate : delegates_) delegates.push_back(delegate.get());
  if (options.profiling) {
    profiler_ = std::make_unique<OpProfiler>(delegates.back());
    delegates.back() = profiler_->delegate();
  }
  for (::TfLiteDelegate* delegate : delegates) TfLiteInterpreterOptionsAddDelegate(settings_.get(), delegate);
  MakeInterpreter();
  for (size_t i = 0; i < inputs().size(); ++i) {
    RefuseOpenSizes(options.model, *reinterpret_cast<const litebnn::TfLiteTensor*>(Input(i)));
  }
}

void TfLiteSession::MakeInterpreter() {
  interpreter_.reset(TfLiteInterpreterCreate(model_.get(), settings_.get()));
  if (!interpreter_) throw ModelError(options_.model, Refusal(options_), reported_);
  if (TfLiteInterpreterAllocateTensors(interpreter_.get()) != ::kTfLiteOk) {
    throw ModelError(options_.model, "the runtime cannot prepare the model", reported_);
  }
}

void TfLiteSession::ResetVariables() {
  // TensorFlow Lite's experimental header, which some distributions lack, declares this function.
  const auto reset = Find<::TfLiteStatus(TfLiteInterpreter*)>("TfLiteInterpreterResetVariableTensors");
  if (reset != nullptr) reset(interpreter_.get());
  // A profile is of one interpreter, and does not depend on values.
  if (!graphs_.assigns_variables || profiler_) return;
  std::vector<std::vector<char>> filled;
  for (size_t i = 0; i < inputs().size(); ++i) {
    const auto* bytes = static_cast<const char*>(TfLiteTensorData(Input(i)));
    filled.emplace_back(bytes, bytes + InputSize(i));
  }
  interpreter_.reset();
  MakeInterpreter();
  for (size_t i = 0; i < filled.size(); ++i) FillInput(i, filled[i].data());
}

double TfLiteSession::Invoke() {
  using Clock = std::chrono::steady_clock;
  if (has_run_ && !options_.keep_state) ResetVariables();
  has_run_ = true;
  const Clock::time_point start = Clock::now();
  const ::TfLiteStatus status = TfLiteInterpreterInvoke(interpreter_.get());
  const double milliseconds = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  if (status != ::kTfLiteOk) throw ModelError(options_.model, "the model cannot run", reported_);
  return milliseconds;
}

void TfLiteSession::Report(void* session, const char* format, va_list arguments) {
  char message[1024];
  std::vsnprintf(message, sizeof message, format, arguments);
  static_cast<TfLiteSession*>(session)->reported_ += std::string(message) + "\n";
}

}  // namespace

std::unique_ptr<Session> LoadSession(const SessionOptions& options) { return std::make_unique<TfLiteSession>(options); }

std::string RuntimeName() { return Format("TensorFlow Lite %s", TfLiteVersion()); }

}  // namespace litebnn::programs
