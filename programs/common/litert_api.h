// The part of LiteRT's C interface that the example programs use. LiteRT publishes its library in the wheel
// ai-edge-litert, but no package with its headers. Therefore this file declares the interface, as in litert/c/*.h of
// LiteRT 2.3. The layouts are those of 64-bit machines, because LiteRT has wheels only for such machines.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

typedef struct LiteRtAcceleratorT* LiteRtAccelerator;
typedef struct LiteRtCompiledModelT* LiteRtCompiledModel;
typedef struct LiteRtDelegateWrapperT* LiteRtDelegateWrapper;
typedef struct LiteRtEnvironmentT* LiteRtEnvironment;
typedef struct LiteRtModelT* LiteRtModel;
typedef struct LiteRtOpT* LiteRtOp;
typedef struct LiteRtOpaqueOptionsT* LiteRtOpaqueOptions;
typedef struct LiteRtOptionsT* LiteRtOptions;
typedef struct LiteRtProfilerT* LiteRtProfiler;
typedef struct LiteRtSignatureT* LiteRtSignature;
typedef struct LiteRtSubgraphT* LiteRtSubgraph;
typedef struct LiteRtTensorT* LiteRtTensor;
typedef struct LiteRtTensorBufferT* LiteRtTensorBuffer;

typedef int LiteRtStatus;
constexpr LiteRtStatus kLiteRtStatusOk = 0;
constexpr LiteRtStatus kLiteRtStatusErrorRuntimeFailure = 3;
constexpr LiteRtStatus kLiteRtStatusErrorInvalidFlatbuffer = 501;

typedef int LiteRtHwAcceleratorSet;
constexpr LiteRtHwAcceleratorSet kLiteRtHwAcceleratorCpu = 1;

// Declarations of LiteRT's environments.

constexpr int kLiteRtAnyTypeInt = 2;
constexpr int kLiteRtEnvOptionTagAutoRegisterAccelerators = 24;
constexpr int kLiteRtEnvOptionTagMinLoggerSeverity = 25;
constexpr int kLiteRtLogSeveritySilent = 4;

typedef struct {
  int tag;
  struct {
    int type;
    int64_t int_value;  // a member of a union; no other member is larger
  } value;
} LiteRtEnvOption;
static_assert(sizeof(LiteRtEnvOption) == 24);

LiteRtStatus LiteRtCreateEnvironment(int num_options, const LiteRtEnvOption* options, LiteRtEnvironment* environment);
void LiteRtDestroyEnvironment(LiteRtEnvironment environment);

// Declarations of LiteRT's accelerators.

typedef struct {
  uint16_t struct_size, major_version, minor_version, reserved;
} LiteRtAbiHeader;

typedef struct {
  int major, minor, patch;
} LiteRtApiVersion;

typedef LiteRtStatus (*LiteRtGetName)(LiteRtAccelerator accelerator, const char** name);
typedef LiteRtStatus (*LiteRtGetVersion)(LiteRtAccelerator accelerator, LiteRtApiVersion* version);
typedef LiteRtStatus (*LiteRtGetHardware)(LiteRtAccelerator accelerator, LiteRtHwAcceleratorSet* hardware);
typedef LiteRtStatus (*LiteRtIsJit)(LiteRtAccelerator accelerator, bool* does_jit_compilation);
typedef LiteRtStatus (*LiteRtCreateDelegate)(void* runtime_context, LiteRtEnvironment environment,
                                             LiteRtAccelerator accelerator, LiteRtOptions options,
                                             LiteRtDelegateWrapper* wrapper);

// The functions of an accelerator. LiteRT's own struct has more members after these, for metrics and buffers.
typedef struct {
  LiteRtAbiHeader abi_header;
  LiteRtGetName get_name;
  LiteRtGetVersion get_version;
  LiteRtGetHardware get_hardware_support;
  LiteRtIsJit is_tflite_delegate_responsible_for_jit_compilation;
  LiteRtCreateDelegate create_delegate;
} LiteRtAcceleratorDef;
static_assert(sizeof(LiteRtAcceleratorDef) == 48);

LiteRtStatus LiteRtCreateAccelerator(LiteRtAccelerator* accelerator);
LiteRtStatus LiteRtSetAcceleratorGetName(LiteRtAccelerator accelerator, LiteRtGetName get);
LiteRtStatus LiteRtSetAcceleratorGetVersion(LiteRtAccelerator accelerator, LiteRtGetVersion get);
LiteRtStatus LiteRtSetAcceleratorGetHardwareSupport(LiteRtAccelerator accelerator, LiteRtGetHardware get);
LiteRtStatus LiteRtSetIsAcceleratorDelegateResponsibleForJitCompilation(LiteRtAccelerator accelerator, LiteRtIsJit get);
LiteRtStatus LiteRtSetDelegateFunction(LiteRtAccelerator accelerator, LiteRtCreateDelegate create);
// Passes ownership of the accelerator to the environment.
LiteRtStatus LiteRtRegisterAccelerator(LiteRtEnvironment environment, LiteRtAccelerator accelerator, void* data,
                                       void (*release_data)(void* data));
LiteRtStatus LiteRtWrapDelegate(struct TfLiteDelegate* delegate, void (*deleter)(struct TfLiteDelegate*),
                                LiteRtDelegateWrapper* wrapper);
LiteRtStatus LiteRtUnwrapDelegate(LiteRtDelegateWrapper wrapper, struct TfLiteDelegate** delegate);

// Declarations of LiteRT's models, their signatures and tensors.

constexpr size_t kLiteRtMaxRank = 8;

typedef struct {
  unsigned int rank : 7;
  unsigned int has_strides : 1;
  int32_t dimensions[kLiteRtMaxRank];
  uint32_t strides[kLiteRtMaxRank];
} LiteRtLayout;
static_assert(sizeof(LiteRtLayout) == 68);

typedef struct {
  int element_type;  // a value of TfLiteType
  LiteRtLayout layout;
} LiteRtRankedTensorType;
static_assert(sizeof(LiteRtRankedTensorType) == 72);

LiteRtStatus LiteRtCreateModelFromBuffer(LiteRtEnvironment environment, const void* buffer, size_t size,
                                         LiteRtModel* model);
void LiteRtDestroyModel(LiteRtModel model);
LiteRtStatus LiteRtGetModelSubgraph(LiteRtModel model, size_t index, LiteRtSubgraph* subgraph);
LiteRtStatus LiteRtGetNumModelSignatures(LiteRtModel model, size_t* count);
LiteRtStatus LiteRtGetModelSignature(LiteRtModel model, size_t index, LiteRtSignature* signature);
LiteRtStatus LiteRtGetSignatureSubgraph(LiteRtSignature signature, LiteRtSubgraph* subgraph);
LiteRtStatus LiteRtGetNumSignatureInputs(LiteRtSignature signature, size_t* count);
LiteRtStatus LiteRtGetNumSignatureOutputs(LiteRtSignature signature, size_t* count);
LiteRtStatus LiteRtGetSignatureInputTensorByIndex(LiteRtSignature signature, size_t index, LiteRtTensor* tensor);
LiteRtStatus LiteRtGetSignatureOutputTensorByIndex(LiteRtSignature signature, size_t index, LiteRtTensor* tensor);
LiteRtStatus LiteRtGetSubgraphOp(LiteRtSubgraph subgraph, size_t index, LiteRtOp* op);
LiteRtStatus LiteRtGetOpOutput(LiteRtOp op, size_t index, LiteRtTensor* output);
LiteRtStatus LiteRtGetTensorName(LiteRtTensor tensor, const char** name);
LiteRtStatus LiteRtGetTensorIndex(LiteRtTensor tensor, uint32_t* index);

// Declarations of LiteRT's options.

LiteRtStatus LiteRtCreateOptions(LiteRtOptions* options);
void LiteRtDestroyOptions(LiteRtOptions options);
LiteRtStatus LiteRtSetOptionsHardwareAccelerators(LiteRtOptions options, LiteRtHwAcceleratorSet hardware);
// LiteRtCreateOpaqueOptions takes ownership of `payload`, and LiteRtAddOpaqueOptions of `opaque_options`.
LiteRtStatus LiteRtCreateOpaqueOptions(const char* identifier, void* payload, void (*destroy)(void* payload),
                                       LiteRtOpaqueOptions* options);
LiteRtStatus LiteRtAddOpaqueOptions(LiteRtOptions options, LiteRtOpaqueOptions opaque_options);

// Declarations of LiteRT's compiled models and their buffers.

constexpr int kLiteRtTensorBufferTypeHostMemory = 1;
constexpr int kLiteRtTensorBufferLockModeWrite = 1;

LiteRtStatus LiteRtCreateCompiledModel(LiteRtEnvironment environment, LiteRtModel model, LiteRtOptions options,
                                       LiteRtCompiledModel* compiled_model);
void LiteRtDestroyCompiledModel(LiteRtCompiledModel compiled_model);
LiteRtStatus LiteRtGetCompiledModelOutputTensorLayouts(LiteRtCompiledModel compiled_model, size_t signature,
                                                       size_t count, LiteRtLayout* layouts, bool update_allocation);
LiteRtStatus LiteRtRunCompiledModel(LiteRtCompiledModel compiled_model, size_t signature, size_t num_inputs,
                                    LiteRtTensorBuffer* inputs, size_t num_outputs, LiteRtTensorBuffer* outputs);
// Returns the messages since the last call of this function. The caller must free them.
LiteRtStatus LiteRtCompiledModelGetErrorMessages(LiteRtCompiledModel compiled_model, char** messages);
LiteRtStatus LiteRtCreateManagedTensorBuffer(LiteRtEnvironment environment, int buffer_type,
                                             const LiteRtRankedTensorType* type, size_t size,
                                             LiteRtTensorBuffer* buffer);
void LiteRtDestroyTensorBuffer(LiteRtTensorBuffer buffer);
LiteRtStatus LiteRtLockTensorBuffer(LiteRtTensorBuffer buffer, void** address, int mode);
LiteRtStatus LiteRtUnlockTensorBuffer(LiteRtTensorBuffer buffer);

// Declarations of LiteRT's profiler.

constexpr int kLiteRtOperatorInvokeEvent = 2;

typedef struct {
  const char* tag;
  int event_type;
  uint64_t start_timestamp_us;
  uint64_t elapsed_time_us;
  size_t memory_usage[6];
  uint64_t event_metadata1;  // for an operator: its node's index
  uint64_t event_metadata2;  // for an operator: its subgraph's index
  int event_source;
} LiteRtProfiledEvent;
static_assert(sizeof(LiteRtProfiledEvent) == 104);

LiteRtStatus LiteRtCompiledModelGetProfiler(LiteRtCompiledModel compiled_model, LiteRtProfiler* profiler);
// Starts recording events, and drops earlier ones.
LiteRtStatus LiteRtStartProfiler(LiteRtProfiler profiler);
LiteRtStatus LiteRtGetNumProfilerEvents(LiteRtProfiler profiler, int* count);
LiteRtStatus LiteRtGetProfilerEvents(LiteRtProfiler profiler, int count, LiteRtProfiledEvent* events);

}  // extern "C"
