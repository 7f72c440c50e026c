// Registers the accelerator through functions that LiteRT exports, for cases in which LiteRT does not load the
// accelerator itself.
#include <string>

#include "kernels/platform/loaded_library.h"
#include "litebnn/litebnn.h"
#include "tflite/entry/litert_accelerator.h"

namespace litebnn {
namespace {

constexpr const char* kAcceleratorFile = "/libLiteRtGpuAccelerator" LITEBNN_LIBRARY_SUFFIX;
// LiteRT's own CPU accelerators, in the order in which LiteRT registers them. XNNPACK's accelerator is named Cpu up to
// version 2.3.
constexpr const char* kCpuAccelerators[] = {
    "LiteRtStaticLinkedAcceleratorYnnpackDef",
    "LiteRtStaticLinkedAcceleratorXnnpackDef",
    "LiteRtStaticLinkedAcceleratorCpuDef",
};

// The LiteRT library in this process, accessed through its exported symbols.
class LiteRtLibrary {
 public:
  // Python loads a runtime without making its symbols global, so the library is first looked up by name.
  LiteRtLibrary() : handle_(FindLoadedLibrary("libLiteRt" LITEBNN_LIBRARY_SUFFIX)) {}
  ~LiteRtLibrary() { CloseLibrary(handle_); }
  LiteRtLibrary(const LiteRtLibrary&) = delete;
  LiteRtLibrary& operator=(const LiteRtLibrary&) = delete;

  void* Address(const char* name) const { return FindSymbol(handle_, name); }

  template <typename Function>
  void Find(const char* name, Function* function) {
    *function = reinterpret_cast<Function>(Address(name));
    if (*function == nullptr && missing_ == nullptr) missing_ = name;
  }

  // Returns true if all symbols were found. Otherwise reports the first one that is missing, and returns false.
  bool FoundAll() const {
    if (missing_ == nullptr) return true;
    PrintLiteRtError(std::string("this process has no LiteRT of version 2.1.6 or newer: ") + missing_ +
                     " is not exported, " + kUseInterpreter);
    return false;
  }

 private:
  void* const handle_;
  const char* missing_ = nullptr;
};

bool FindRuntime(LiteRtLibrary* library, LiteRtRuntimeContext* runtime) {
  library->Find("LiteRtGetOpaqueOptions", &runtime->get_opaque_options);
  library->Find("LiteRtFindOpaqueOptionsData", &runtime->find_opaque_options_data);
  library->Find("LiteRtGetEnvironmentOptions", &runtime->get_environment_options);
  library->Find("LiteRtGetEnvironmentOptionsValue", &runtime->get_environment_options_value);
  library->Find("LiteRtWrapDelegate", &runtime->wrap_delegate);
  return library->FoundAll();
}

// Creates the delegate. The function does not use the context, because its layout in LiteRT 2.1.6 differs from that in
// later versions.
LiteRtStatus CreateDelegateWithoutContext(LiteRtRuntimeContext*, LiteRtEnvironment environment, LiteRtAcceleratorConst,
                                          LiteRtOptions options, LiteRtDelegateWrapper* wrapper) {
  return PrintOutOfMemory([=] {
    LiteRtLibrary library;
    LiteRtRuntimeContext runtime = {};
    if (!FindRuntime(&library, &runtime)) return kLiteRtStatusErrorWrongVersion;
    return WrapNewDelegate(runtime, environment, options, wrapper);
  });
}

template <typename Member>
using Setter = LiteRtStatus (*)(LiteRtAccelerator accelerator, Member member);

// LiteRT's functions for registering accelerators.
struct Registry {
  LiteRtStatus (*count)(LiteRtEnvironment environment, size_t* count);
  LiteRtStatus (*get)(LiteRtEnvironment environment, size_t index, LiteRtAccelerator* accelerator);
  LiteRtStatus (*hardware_of)(LiteRtAccelerator accelerator, int* supported_hardware);
  LiteRtStatus (*create)(LiteRtAccelerator* accelerator);
  Setter<decltype(LiteRtAcceleratorDef::get_name)> set_name;
  Setter<decltype(LiteRtAcceleratorDef::get_version)> set_version;
  Setter<decltype(LiteRtAcceleratorDef::get_hardware_support)> set_hardware_support;
  Setter<decltype(LiteRtAcceleratorDef::is_tflite_delegate_responsible_for_jit_compilation)> set_responsible;
  Setter<LiteRtCreateDelegate> set_create_delegate;
  LiteRtStatus (*add)(LiteRtEnvironment environment, LiteRtAccelerator accelerator, void* data,
                      void (*release_data)(void* data));
};

bool FindRegistry(LiteRtLibrary* library, Registry* registry) {
  // LiteRT's releases before 2.1.6 must be refused, because their registration functions have other parameters. These
  // releases also lack LiteRtDestroyDelegateWrapper, so looking up this function detects them.
  void (*destroy_delegate_wrapper)(LiteRtDelegateWrapper wrapper);
  library->Find("LiteRtDestroyDelegateWrapper", &destroy_delegate_wrapper);
  library->Find("LiteRtGetNumAccelerators", &registry->count);
  library->Find("LiteRtGetAccelerator", &registry->get);
  library->Find("LiteRtGetAcceleratorHardwareSupport", &registry->hardware_of);
  library->Find("LiteRtCreateAccelerator", &registry->create);
  library->Find("LiteRtSetAcceleratorGetName", &registry->set_name);
  library->Find("LiteRtSetAcceleratorGetVersion", &registry->set_version);
  library->Find("LiteRtSetAcceleratorGetHardwareSupport", &registry->set_hardware_support);
  library->Find("LiteRtSetIsAcceleratorDelegateResponsibleForJitCompilation", &registry->set_responsible);
  library->Find("LiteRtSetDelegateFunction", &registry->set_create_delegate);
  library->Find("LiteRtRegisterAccelerator", &registry->add);
  return library->FoundAll();
}

LiteRtStatus Add(const Registry& registry, LiteRtEnvironment environment, const LiteRtAcceleratorDef& definition,
                 LiteRtCreateDelegate create_delegate) {
  LiteRtAccelerator accelerator;
  const LiteRtStatus status = registry.create(&accelerator);
  if (status != kLiteRtStatusOk) return status;
  // LiteRT's functions that set an accelerator's properties fail only for a null argument, so their results are
  // ignored.
  registry.set_name(accelerator, definition.get_name);
  registry.set_version(accelerator, definition.get_version);
  registry.set_hardware_support(accelerator, definition.get_hardware_support);
  registry.set_responsible(accelerator, definition.is_tflite_delegate_responsible_for_jit_compilation);
  registry.set_create_delegate(accelerator, create_delegate);
  return registry.add(environment, accelerator, nullptr, nullptr);
}

bool HasCpuAccelerator(const Registry& registry, LiteRtEnvironment environment) {
  size_t count = 0;
  registry.count(environment, &count);
  for (size_t i = 0; i < count; ++i) {
    LiteRtAccelerator accelerator;
    int hardware = 0;
    if (registry.get(environment, i, &accelerator) == kLiteRtStatusOk &&
        registry.hardware_of(accelerator, &hardware) == kLiteRtStatusOk && (hardware & kLiteRtHwAcceleratorCpu) != 0) {
      return true;
    }
  }
  return false;
}

// True if the accelerator in the environment's folder is this library itself, or a link to this library.
bool IsInRuntimeFolder(LiteRtEnvironment environment) {
  LiteRtLibrary library;
  LiteRtRuntimeContext runtime = {};
  return FindRuntime(&library, &runtime) &&
         IsFileOfThisCode((FindRuntimeFolder(runtime, environment) + kAcceleratorFile).c_str());
}

LiteRtStatus RegisterFromFolder(LiteRtEnvironment environment) {
  // LiteRT 2.1.6 calls LiteRtRegisterGpuAccelerator of any library in the process, whether or not it is in the
  // environment's folder. Outside of this folder, litebnn must not take the place of a GPU accelerator.
  if (!IsInRuntimeFolder(environment)) return kLiteRtStatusErrorNotFound;
  LiteRtLibrary library;
  Registry registry;
  if (!FindRegistry(&library, &registry)) return kLiteRtStatusErrorWrongVersion;
  return Add(registry, environment, LiteRtAcceleratorImpl, CreateDelegateWithoutContext);
}

LiteRtStatus RegisterWithCpu(LiteRtEnvironment environment) {
  LiteRtLibrary library;
  Registry registry;
  if (!FindRegistry(&library, &registry)) return kLiteRtStatusErrorWrongVersion;
  if (environment == nullptr) {
    PrintLiteRtError("litebnn_register_accelerator: expected an environment, found null");
    return kLiteRtStatusErrorInvalidArgument;
  }
  const bool has_cpu = HasCpuAccelerator(registry, environment);
  LiteRtStatus status = Add(registry, environment, LiteRtAcceleratorImpl, CreateDelegateWithoutContext);
  for (const char* name : kCpuAccelerators) {
    const auto* definition = static_cast<const LiteRtAcceleratorDef* const*>(library.Address(name));
    if (has_cpu || status != kLiteRtStatusOk || definition == nullptr || *definition == nullptr) continue;
    status = Add(registry, environment, **definition, (*definition)->create_delegate);
  }
  return status;
}

}  // namespace
}  // namespace litebnn

litebnn::LiteRtStatus LiteRtRegisterGpuAccelerator(litebnn::LiteRtEnvironment environment) {
  return litebnn::PrintOutOfMemory([=] { return litebnn::RegisterFromFolder(environment); });
}

int litebnn_register_accelerator(struct LiteRtEnvironmentT* environment) {
  return litebnn::PrintOutOfMemory([=] { return litebnn::RegisterWithCpu(environment); });
}
