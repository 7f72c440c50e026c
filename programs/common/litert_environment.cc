#include "common/litert_environment.h"

#include <algorithm>
#include <iterator>

#include "kernels/platform/loaded_library.h"

namespace litebnn::programs {
namespace {

constexpr int64_t kTfLiteDelegateFlagsPerOperatorProfiling = 4;

// The delegates of the environment. The arrays of delegates and of accelerators have the same order.
const std::vector<Delegate>* delegates_of_environment = nullptr;
std::vector<LiteRtAccelerator> accelerators_of_delegates;

// Finds XNNPACK's accelerator in LiteRT's library. Returns null if the library was built without XNNPACK. Returns null
// on Windows too, where the library does not export this accelerator.
const LiteRtAcceleratorDef* FindXnnpack() {
  void* library = FindLoadedLibrary("libLiteRt" LITEBNN_LIBRARY_SUFFIX);
  void* address = FindSymbol(library, "LiteRtStaticLinkedAcceleratorCpuDef");
  CloseLibrary(library);
  return address == nullptr ? nullptr : *static_cast<const LiteRtAcceleratorDef* const*>(address);
}

LiteRtStatus WrapDelegate(void*, LiteRtEnvironment, LiteRtAccelerator accelerator, LiteRtOptions,
                          LiteRtDelegateWrapper* wrapper) {
  const auto& all = accelerators_of_delegates;
  const auto index = static_cast<size_t>(std::find(all.begin(), all.end(), accelerator) - all.begin());
  if (index == all.size()) return kLiteRtStatusErrorRuntimeFailure;
  // The delegate's deleter does nothing, because the delegate serves every model of the environment.
  return LiteRtWrapDelegate((*delegates_of_environment)[index].get(), [](::TfLiteDelegate*) {}, wrapper);
}

// An accelerator is registered for each delegate. LiteRT calls it to get the delegate at the same position in the list
// of delegates.
constexpr LiteRtAcceleratorDef kDelegateAccelerator = {
    {sizeof(LiteRtAcceleratorDef), 1, 0, 0},
    [](LiteRtAccelerator, const char** name) {
      *name = "delegate";
      return kLiteRtStatusOk;
    },
    [](LiteRtAccelerator, LiteRtApiVersion* version) {
      *version = {1, 0, 0};
      return kLiteRtStatusOk;
    },
    [](LiteRtAccelerator, LiteRtHwAcceleratorSet* hardware) {
      *hardware = kLiteRtHwAcceleratorCpu;
      return kLiteRtStatusOk;
    },
    [](LiteRtAccelerator, bool* does_jit_compilation) {
      *does_jit_compilation = true;
      return kLiteRtStatusOk;
    },
    WrapDelegate,
};

LiteRtAccelerator Register(LiteRtEnvironment environment, const LiteRtAcceleratorDef& type) {
  LiteRtAccelerator accelerator = nullptr;
  Check(LiteRtCreateAccelerator(&accelerator), "make an accelerator");
  LiteRtSetAcceleratorGetName(accelerator, type.get_name);
  LiteRtSetAcceleratorGetVersion(accelerator, type.get_version);
  LiteRtSetAcceleratorGetHardwareSupport(accelerator, type.get_hardware_support);
  LiteRtSetIsAcceleratorDelegateResponsibleForJitCompilation(accelerator,
                                                             type.is_tflite_delegate_responsible_for_jit_compilation);
  LiteRtSetDelegateFunction(accelerator, type.create_delegate);
  Check(LiteRtRegisterAccelerator(environment, accelerator, nullptr, nullptr), "register an accelerator");
  return accelerator;
}

LiteRtStatus CreateXnnpack(void* runtime_context, LiteRtEnvironment environment, LiteRtAccelerator accelerator,
                           LiteRtOptions options, LiteRtDelegateWrapper* wrapper) {
  const LiteRtStatus status =
      FindXnnpack()->create_delegate(runtime_context, environment, accelerator, options, wrapper);
  ::TfLiteDelegate* delegate = nullptr;
  if (status != kLiteRtStatusOk || LiteRtUnwrapDelegate(*wrapper, &delegate) != kLiteRtStatusOk) return status;
  // Clears a flag of XNNPACK's delegate, so that the profiler measures XNNPACK's nodes like those of other delegates,
  // and not the operators inside them.
  reinterpret_cast<TfLiteDelegate*>(delegate)->flags &= ~kTfLiteDelegateFlagsPerOperatorProfiling;
  return status;
}

LiteRtAcceleratorDef Xnnpack(const LiteRtAcceleratorDef& original) {
  LiteRtAcceleratorDef type = original;
  if (type.abi_header.major_version != 1 || type.abi_header.struct_size < sizeof type) {
    throw Error(Format("LiteRT describes XNNPACK by version %d.%d, expected 1.0", type.abi_header.major_version,
                       type.abi_header.minor_version));
  }
  type.create_delegate = CreateXnnpack;
  return type;
}

}  // namespace

void Check(LiteRtStatus status, const char* what) {
  if (status != kLiteRtStatusOk) throw Error(Format("LiteRT cannot %s (status %d)", what, status));
}

Owned<LiteRtEnvironment> MakeEnvironment(const std::vector<Delegate>& delegates, bool xnnpack) {
  delegates_of_environment = &delegates;
  accelerators_of_delegates.clear();
  const LiteRtAcceleratorDef* own = xnnpack ? FindXnnpack() : nullptr;
  // If the program cannot register XNNPACK after the delegates, LiteRT registers XNNPACK by itself, before the
  // delegates.
  const int64_t by_itself = xnnpack && own == nullptr;
  const LiteRtEnvOption options[] = {
      {kLiteRtEnvOptionTagAutoRegisterAccelerators, {kLiteRtAnyTypeInt, by_itself}},
      {kLiteRtEnvOptionTagMinLoggerSeverity, {kLiteRtAnyTypeInt, kLiteRtLogSeveritySilent}},
  };
  LiteRtEnvironment environment = nullptr;
  Check(LiteRtCreateEnvironment(static_cast<int>(std::size(options)), options, &environment), "start");
  Owned<LiteRtEnvironment> owned(environment, LiteRtDestroyEnvironment);
  // Accelerators are asked in their order. Each one claims nodes that the earlier ones have left.
  for (size_t i = 0; i < delegates.size(); ++i) {
    accelerators_of_delegates.push_back(Register(environment, kDelegateAccelerator));
  }
  if (own != nullptr) Register(environment, Xnnpack(*own));
  return owned;
}

}  // namespace litebnn::programs
