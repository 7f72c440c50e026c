// Declarations of the part of LiteRT's C ABI that an accelerator needs. LiteRT's own headers for it are not included,
// because they are internal and need LiteRT's sources.
//
// The layouts hold for LiteRT 2.2 to 2.4, whose structures begin with a header of size and version. LiteRT 2.1.6 has
// the same functions in another order and without headers, so litebnn looks up these functions by name.
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
  uint16_t struct_size;    // of the structure that this header begins, header included
  uint16_t major_version;  // changes if the layout is incompatible
  uint16_t minor_version;  // counts appended members
  uint16_t reserved;
};

// The runtime's functions, called by accelerators. Newer minor versions append members.
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
  // The function passes the ownership of the delegate to the runtime, which calls `deleter` with the delegate at the
  // end.
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

// An accelerator's functions, called by the runtime.
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

// LiteRT itself asserts its layouts only for 64-bit machines.
static_assert(sizeof(LiteRtAbiHeader) == 8);
static_assert(sizeof(void*) != 8 || sizeof(LiteRtAny) == 16);
static_assert(sizeof(void*) != 8 || sizeof(LiteRtAcceleratorDef) == 200);
static_assert(sizeof(void*) != 8 || offsetof(LiteRtAcceleratorDef, create_delegate) == 40);
static_assert(sizeof(void*) != 8 || offsetof(LiteRtAcceleratorDef, buffer_handlers) == 64);
static_assert(sizeof(void*) != 8 || offsetof(LiteRtRuntimeContext, get_opaque_options) == 80);
static_assert(sizeof(void*) != 8 || offsetof(LiteRtRuntimeContext, get_environment_options) == 104);
static_assert(sizeof(void*) != 8 || offsetof(LiteRtRuntimeContext, wrap_delegate) == 144);

}  // namespace litebnn
