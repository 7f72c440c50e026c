// The part of LiteRT's C ABI that an accelerator needs, as abi.h is for TensorFlow Lite: declared here instead of
// included, because LiteRT's headers for it are internal and need its sources.
//
// Layouts as in LiteRT 2.2 to 2.4, which say in a header of each structure how long it is and of what version. LiteRT
// 2.1.6 has the same functions, but neither these headers nor this order, so there they are found by their names.
#pragma once

#include <cstddef>
#include <cstdint>

struct LiteRtEnvironmentT;
struct TfLiteDelegate;

namespace litebnn {

enum LiteRtStatus : int {
  kLiteRtStatusOk = 0,
  kLiteRtStatusErrorInvalidArgument = 1,
  kLiteRtStatusErrorMemoryAllocationFailure = 2,
  kLiteRtStatusErrorNotFound = 6,
  kLiteRtStatusErrorWrongVersion = 8,
};

// Bits of a LiteRtHwAcceleratorSet.
constexpr int kLiteRtHwAcceleratorCpu = 1;

// A LiteRtEnvOptionTag: the folder in which the runtime looks for accelerators.
constexpr int kLiteRtEnvOptionTagRuntimeLibraryDir = 22;

// Values of LiteRtAnyType.
constexpr int kLiteRtAnyTypeString = 8;

using LiteRtEnvironment = LiteRtEnvironmentT*;
using LiteRtAccelerator = struct LiteRtAcceleratorT*;
using LiteRtAcceleratorConst = const LiteRtAcceleratorT*;
using LiteRtOptions = struct LiteRtOptionsT*;
using LiteRtOpaqueOptions = struct LiteRtOpaqueOptionsT*;
using LiteRtEnvironmentOptions = struct LiteRtEnvironmentOptionsT*;
using LiteRtDelegateWrapper = struct LiteRtDelegateWrapperT*;

struct LiteRtAny {
  int type;
  union {
    int64_t int_value;
    const char* str_value;
  };
};

struct LiteRtApiVersion {
  int major;
  int minor;
  int patch;
};

struct LiteRtAbiHeader {
  uint16_t struct_size;    // of the structure that it begins, with this header
  uint16_t major_version;  // another one is another layout
  uint16_t minor_version;  // counts what has been appended
  uint16_t reserved;
};

// The runtime's functions, from its side. Newer minor versions have more behind the ones named here.
struct LiteRtRuntimeContext {
  LiteRtAbiHeader abi_header;
  void* before_get_opaque_options[9];
  LiteRtStatus (*get_opaque_options)(LiteRtOptions options, LiteRtOpaqueOptions* opaque_options);
  LiteRtStatus (*find_opaque_options_data)(LiteRtOpaqueOptions options, const char* payload_identifier,
                                           void** payload_data);
  void* destroy_options;
  LiteRtStatus (*get_environment_options)(LiteRtEnvironment environment, LiteRtEnvironmentOptions* options);
  LiteRtStatus (*get_environment_options_value)(LiteRtEnvironmentOptions options, int tag, LiteRtAny* option_value);
  void* before_wrap_delegate[3];
  // What is wrapped is the runtime's; it calls `deleter` with it in the end.
  LiteRtStatus (*wrap_delegate)(::TfLiteDelegate* delegate, void (*deleter)(::TfLiteDelegate*),
                                LiteRtDelegateWrapper* wrapper);
};

using LiteRtCreateDelegate = LiteRtStatus (*)(LiteRtRuntimeContext* context, LiteRtEnvironment environment,
                                              LiteRtAcceleratorConst accelerator, LiteRtOptions options,
                                              LiteRtDelegateWrapper* wrapper);

struct LiteRtCustomTensorBufferHandlersDef {
  LiteRtAbiHeader abi_header;
  void* functions[6];
  int device_tag;
  int queue_tag;
  size_t num_supported_buffer_types;
  int supported_buffer_types[16];
};

// An accelerator, from its side.
struct LiteRtAcceleratorDef {
  LiteRtAbiHeader abi_header;
  LiteRtStatus (*get_name)(LiteRtAcceleratorConst accelerator, const char** name);
  LiteRtStatus (*get_version)(LiteRtAcceleratorConst accelerator, LiteRtApiVersion* version);
  LiteRtStatus (*get_hardware_support)(LiteRtAcceleratorConst accelerator, int* supported_hardware);
  LiteRtStatus (*is_tflite_delegate_responsible_for_jit_compilation)(LiteRtAcceleratorConst accelerator,
                                                                     bool* does_jit_compilation);
  LiteRtCreateDelegate create_delegate;
  void* start_metrics_collection;
  void* stop_metrics_collection;
  LiteRtCustomTensorBufferHandlersDef buffer_handlers;
};

// LiteRT itself states its layouts for 64-bit machines only.
static_assert(sizeof(LiteRtAbiHeader) == 8);
static_assert(sizeof(void*) != 8 || sizeof(LiteRtAny) == 16);
static_assert(sizeof(void*) != 8 || sizeof(LiteRtAcceleratorDef) == 200);
static_assert(sizeof(void*) != 8 || offsetof(LiteRtAcceleratorDef, create_delegate) == 40);
static_assert(sizeof(void*) != 8 || offsetof(LiteRtAcceleratorDef, buffer_handlers) == 64);
static_assert(sizeof(void*) != 8 || offsetof(LiteRtRuntimeContext, get_opaque_options) == 80);
static_assert(sizeof(void*) != 8 || offsetof(LiteRtRuntimeContext, get_environment_options) == 104);
static_assert(sizeof(void*) != 8 || offsetof(LiteRtRuntimeContext, wrap_delegate) == 144);

}  // namespace litebnn
