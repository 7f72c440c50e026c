// The file declares the part of the C interface of TensorFlow Lite and LiteRT that litebnn uses.
//
// The layouts are those of tensorflow/lite/core/c/common.h and hold for TensorFlow Lite 2.5 to 2.21 and LiteRT, because
// later versions only appended members. Structures made by the runtime are read through pointers and may be longer than
// declared. Structures made by litebnn end in zeroed room for members of newer runtimes. ops/tests/abi_test.cc checks
// the offsets against the official headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace litebnn {

enum TfLiteStatus : int { kTfLiteOk = 0, kTfLiteError = 1, kTfLiteDelegateError = 2 };

enum TfLiteType : int {
  kTfLiteNoType = 0,
  kTfLiteFloat32 = 1,
  kTfLiteInt32 = 2,
  kTfLiteUInt8 = 3,
  kTfLiteInt64 = 4,
  kTfLiteString = 5,
  kTfLiteBool = 6,
  kTfLiteInt16 = 7,
  kTfLiteInt8 = 9,
  kTfLiteFloat16 = 10,
  kTfLiteFloat64 = 11,
  kTfLiteResource = 14,
};

enum TfLiteAllocationType : int {
  kTfLiteMemNone = 0,
  kTfLiteMmapRo = 1,
  kTfLiteArenaRw = 2,
  kTfLiteArenaRwPersistent = 3,
  kTfLiteDynamic = 4,
  kTfLitePersistentRo = 5,
  kTfLiteCustom = 6,
};

constexpr int32_t kTfLiteBuiltinAdd = 0;
constexpr int32_t kTfLiteBuiltinAveragePool2d = 1;
constexpr int32_t kTfLiteBuiltinConcatenation = 2;
constexpr int32_t kTfLiteBuiltinConv2d = 3;
constexpr int32_t kTfLiteBuiltinDepthwiseConv2d = 4;
constexpr int32_t kTfLiteBuiltinDequantize = 6;
constexpr int32_t kTfLiteBuiltinFullyConnected = 9;
constexpr int32_t kTfLiteBuiltinLogistic = 14;
constexpr int32_t kTfLiteBuiltinMaxPool2d = 17;
constexpr int32_t kTfLiteBuiltinMul = 18;
constexpr int32_t kTfLiteBuiltinRelu = 19;
constexpr int32_t kTfLiteBuiltinRelu6 = 21;
constexpr int32_t kTfLiteBuiltinReshape = 22;
constexpr int32_t kTfLiteBuiltinSoftmax = 25;
constexpr int32_t kTfLiteBuiltinPad = 34;
constexpr int32_t kTfLiteBuiltinMean = 40;
constexpr int32_t kTfLiteBuiltinSub = 41;
constexpr int32_t kTfLiteBuiltinPrelu = 54;
constexpr int32_t kTfLiteBuiltinQuantize = 114;
constexpr int32_t kTfLiteBuiltinAssignVariable = 144;
constexpr int32_t kTfLiteBuiltinIf = 118;
constexpr int32_t kTfLiteBuiltinWhile = 119;
constexpr int32_t kTfLiteBuiltinCallOnce = 129;
// The builtin operator code of every custom operator.
constexpr int32_t kTfLiteBuiltinCustom = 32;
// Values of TfLiteFusedActivation.
constexpr int kTfLiteActNone = 0;
constexpr int kTfLiteActRelu = 1;
constexpr int kTfLiteActReluN1To1 = 2;
constexpr int kTfLiteActRelu6 = 3;
// The index that stands for an input that is left out. In the official header it is the macro kTfLiteOptionalTensor.
constexpr int kOptionalTensor = -1;
constexpr int kTfLiteNullBufferHandle = -1;
// Without this flag the runtime prepares the graph before it asks the delegate, and stops at ops that only the delegate
// knows.
constexpr int64_t kTfLiteDelegateFlagsAllowDynamicTensors = 1;

// Values of TfLitePadding.
constexpr int kTfLitePaddingSame = 1;
constexpr int kTfLitePaddingValid = 2;

// Options of builtin ops, from tensorflow/lite/core/c/builtin_op_data.h, which abi_test.cc does not include. Only the
// first members are declared, which every version has.
struct TfLiteAddParams {
  int activation;
};
struct TfLiteConcatenationParams {
  int axis;
  int activation;
};
struct TfLiteConvParams {
  int padding;
  int stride_width, stride_height;
  int activation;
  int dilation_width_factor, dilation_height_factor;
};
struct TfLitePoolParams {
  int padding;
  int stride_width, stride_height;
  int filter_width, filter_height;
  int activation;
};

struct TfLiteIntArray {
  int size;
  int data[1];  // `size` values follow
};

struct TfLiteFloatArray {
  int size;
  float data[1];  // `size` values follow
};

struct TfLiteQuantizationParams {
  float scale;
  int32_t zero_point;
};

// The value of a tensor's quantization.type if its params are a TfLiteAffineQuantization.
constexpr int kTfLiteAffineQuantization = 1;
struct TfLiteAffineQuantization {
  TfLiteFloatArray* scale;
  TfLiteIntArray* zero_point;
  int32_t quantized_dimension;
};

struct TfLiteContext;
struct TfLiteNode;
struct TfLiteDelegate;

struct TfLiteTensor {
  TfLiteType type;
  void* data;
  TfLiteIntArray* dims;
  TfLiteQuantizationParams params;
  TfLiteAllocationType allocation_type;
  size_t bytes;
  const void* allocation;
  const char* name;
  TfLiteDelegate* delegate;
  int buffer_handle;
  bool data_is_stale;
  bool is_variable;
  struct {
    int type;
    void* params;
  } quantization;
  void* sparsity;
  const TfLiteIntArray* dims_signature;
};

struct TfLiteNode {
  TfLiteIntArray* inputs;
  TfLiteIntArray* outputs;
  TfLiteIntArray* intermediates;
  TfLiteIntArray* temporaries;
  void* user_data;
  void* builtin_data;
  const void* custom_initial_data;
  int custom_initial_data_size;
  TfLiteDelegate* delegate;
};

struct TfLiteRegistration {
  void* (*init)(TfLiteContext* context, const char* buffer, size_t length);
  void (*free)(TfLiteContext* context, void* buffer);
  TfLiteStatus (*prepare)(TfLiteContext* context, TfLiteNode* node);
  TfLiteStatus (*invoke)(TfLiteContext* context, TfLiteNode* node);
  const char* (*profiling_string)(const TfLiteContext* context, const TfLiteNode* node);
  int32_t builtin_code;
  const char* custom_name;
  int version;
  // The runtime copies this structure, and uses its own sizeof for it.
  void* zeroed_room[16];
};

// The type with which a TfLiteRegistration is passed by value. On 64-bit machines, a pointer to the structure is
// passed, so the structure may be longer than the runtime's own. On 32-bit machines, it is copied among the other
// arguments, so its size must be that of the newest runtimes. For older runtimes, execution_plan.cc has types of other
// sizes.
struct TfLiteRegistration32 {
  void* members[10];
  uint64_t inplace_operator;
};
using TfLiteRegistrationArgument = std::conditional_t<sizeof(void*) == 8, TfLiteRegistration, TfLiteRegistration32>;

struct TfLiteDelegateParams {
  TfLiteDelegate* delegate;
  TfLiteIntArray* nodes_to_replace;
  TfLiteIntArray* input_tensors;
  TfLiteIntArray* output_tensors;
};

struct TfLiteDelegate {
  void* data_;
  TfLiteStatus (*Prepare)(TfLiteContext* context, TfLiteDelegate* delegate);
  void* CopyFromBufferHandle;
  void* CopyToBufferHandle;
  void* FreeBufferHandle;
  int64_t flags;
  void* zeroed_room[16];
};

struct TfLiteContext {
  size_t tensors_size;
  TfLiteStatus (*GetExecutionPlan)(TfLiteContext* context, TfLiteIntArray** execution_plan);
  TfLiteTensor* tensors;
  void* impl_;
  // The function ResizeTensor takes ownership of `new_size`, which must come from malloc.
  TfLiteStatus (*ResizeTensor)(TfLiteContext* context, TfLiteTensor* tensor, TfLiteIntArray* new_size);
  void (*ReportError)(TfLiteContext* context, const char* message, ...);
  void* AddTensors;
  TfLiteStatus (*GetNodeAndRegistration)(TfLiteContext* context, int node_index, TfLiteNode** node,
                                         TfLiteRegistration** registration);
  TfLiteStatus (*ReplaceNodeSubsetsWithDelegateKernels)(TfLiteContext* context, TfLiteRegistrationArgument registration,
                                                        const TfLiteIntArray* nodes_to_replace,
                                                        TfLiteDelegate* delegate);
  int recommended_num_threads;
};

// The checks below can be short, because each member of the structures above has the size of a pointer or of an int.
constexpr size_t kPointer = sizeof(void*);
static_assert(sizeof(int) == 4 && sizeof(size_t) == kPointer && (kPointer == 8 || kPointer == 4));

// Asserts an offset on 64-bit and on 32-bit platforms.
#define LITEBNN_ASSERT_OFFSET(type, member, offset64, offset32) \
  static_assert(offsetof(type, member) == (kPointer == 8 ? (offset64) : (offset32)), #type "." #member)

LITEBNN_ASSERT_OFFSET(TfLiteIntArray, data, 4, 4);
LITEBNN_ASSERT_OFFSET(TfLiteFloatArray, data, 4, 4);
LITEBNN_ASSERT_OFFSET(TfLiteAffineQuantization, scale, 0, 0);
LITEBNN_ASSERT_OFFSET(TfLiteAffineQuantization, zero_point, 8, 4);
LITEBNN_ASSERT_OFFSET(TfLiteAffineQuantization, quantized_dimension, 16, 8);

LITEBNN_ASSERT_OFFSET(TfLiteTensor, type, 0, 0);
LITEBNN_ASSERT_OFFSET(TfLiteTensor, data, 8, 4);
LITEBNN_ASSERT_OFFSET(TfLiteTensor, dims, 16, 8);
LITEBNN_ASSERT_OFFSET(TfLiteTensor, params, 24, 12);
LITEBNN_ASSERT_OFFSET(TfLiteTensor, allocation_type, 32, 20);
LITEBNN_ASSERT_OFFSET(TfLiteTensor, bytes, 40, 24);
LITEBNN_ASSERT_OFFSET(TfLiteTensor, allocation, 48, 28);
LITEBNN_ASSERT_OFFSET(TfLiteTensor, name, 56, 32);
LITEBNN_ASSERT_OFFSET(TfLiteTensor, delegate, 64, 36);
LITEBNN_ASSERT_OFFSET(TfLiteTensor, buffer_handle, 72, 40);
LITEBNN_ASSERT_OFFSET(TfLiteTensor, data_is_stale, 76, 44);
LITEBNN_ASSERT_OFFSET(TfLiteTensor, is_variable, 77, 45);
LITEBNN_ASSERT_OFFSET(TfLiteTensor, quantization, 80, 48);
LITEBNN_ASSERT_OFFSET(TfLiteTensor, sparsity, 96, 56);
LITEBNN_ASSERT_OFFSET(TfLiteTensor, dims_signature, 104, 60);
// The size of TfLiteTensor matters as well as the offsets of its members, because the runtime keeps its tensors in an
// array.
static_assert(sizeof(TfLiteTensor) == (kPointer == 8 ? 112 : 64));

LITEBNN_ASSERT_OFFSET(TfLiteNode, inputs, 0, 0);
LITEBNN_ASSERT_OFFSET(TfLiteNode, outputs, 8, 4);
LITEBNN_ASSERT_OFFSET(TfLiteNode, intermediates, 16, 8);
LITEBNN_ASSERT_OFFSET(TfLiteNode, temporaries, 24, 12);
LITEBNN_ASSERT_OFFSET(TfLiteNode, user_data, 32, 16);
LITEBNN_ASSERT_OFFSET(TfLiteNode, builtin_data, 40, 20);
LITEBNN_ASSERT_OFFSET(TfLiteNode, custom_initial_data, 48, 24);
LITEBNN_ASSERT_OFFSET(TfLiteNode, custom_initial_data_size, 56, 28);
LITEBNN_ASSERT_OFFSET(TfLiteNode, delegate, 64, 32);

LITEBNN_ASSERT_OFFSET(TfLiteRegistration, init, 0, 0);
LITEBNN_ASSERT_OFFSET(TfLiteRegistration, free, 8, 4);
LITEBNN_ASSERT_OFFSET(TfLiteRegistration, prepare, 16, 8);
LITEBNN_ASSERT_OFFSET(TfLiteRegistration, invoke, 24, 12);
LITEBNN_ASSERT_OFFSET(TfLiteRegistration, profiling_string, 32, 16);
LITEBNN_ASSERT_OFFSET(TfLiteRegistration, builtin_code, 40, 20);
LITEBNN_ASSERT_OFFSET(TfLiteRegistration, custom_name, 48, 24);
LITEBNN_ASSERT_OFFSET(TfLiteRegistration, version, 56, 28);

LITEBNN_ASSERT_OFFSET(TfLiteDelegateParams, delegate, 0, 0);
LITEBNN_ASSERT_OFFSET(TfLiteDelegateParams, nodes_to_replace, 8, 4);
LITEBNN_ASSERT_OFFSET(TfLiteDelegateParams, input_tensors, 16, 8);
LITEBNN_ASSERT_OFFSET(TfLiteDelegateParams, output_tensors, 24, 12);

LITEBNN_ASSERT_OFFSET(TfLiteDelegate, data_, 0, 0);
LITEBNN_ASSERT_OFFSET(TfLiteDelegate, Prepare, 8, 4);
LITEBNN_ASSERT_OFFSET(TfLiteDelegate, CopyFromBufferHandle, 16, 8);
LITEBNN_ASSERT_OFFSET(TfLiteDelegate, CopyToBufferHandle, 24, 12);
LITEBNN_ASSERT_OFFSET(TfLiteDelegate, FreeBufferHandle, 32, 16);
// 32-bit x86 aligns int64_t to 4 bytes in structures, ARM to 8; after five pointers that is offset 20 or 24.
LITEBNN_ASSERT_OFFSET(TfLiteDelegate, flags, 40, alignof(int64_t) == 8 ? 24 : 20);

LITEBNN_ASSERT_OFFSET(TfLiteContext, tensors_size, 0, 0);
LITEBNN_ASSERT_OFFSET(TfLiteContext, GetExecutionPlan, 8, 4);
LITEBNN_ASSERT_OFFSET(TfLiteContext, tensors, 16, 8);
LITEBNN_ASSERT_OFFSET(TfLiteContext, impl_, 24, 12);
LITEBNN_ASSERT_OFFSET(TfLiteContext, ResizeTensor, 32, 16);
LITEBNN_ASSERT_OFFSET(TfLiteContext, ReportError, 40, 20);
LITEBNN_ASSERT_OFFSET(TfLiteContext, AddTensors, 48, 24);
LITEBNN_ASSERT_OFFSET(TfLiteContext, GetNodeAndRegistration, 56, 28);
LITEBNN_ASSERT_OFFSET(TfLiteContext, ReplaceNodeSubsetsWithDelegateKernels, 64, 32);
LITEBNN_ASSERT_OFFSET(TfLiteContext, recommended_num_threads, 72, 36);

#undef LITEBNN_ASSERT_OFFSET

}  // namespace litebnn
