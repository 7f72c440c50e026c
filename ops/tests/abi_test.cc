// A compile-time comparison of tflite/runtime/abi.h with the runtime's official headers. tests/ops/test_abi.py compiles
// this file for every CPU for which a compiler is installed.
#include "tflite/runtime/abi.h"

#include <cstddef>

#include "tensorflow/lite/c/common.h"

#define SAME_OFFSET(type, member) static_assert(offsetof(litebnn::type, member) == offsetof(::type, member))
#define SAME_VALUE(name) static_assert(static_cast<int>(litebnn::name) == static_cast<int>(::name))

SAME_OFFSET(TfLiteIntArray, size);
SAME_OFFSET(TfLiteIntArray, data);
SAME_OFFSET(TfLiteQuantizationParams, scale);
SAME_OFFSET(TfLiteQuantizationParams, zero_point);

SAME_OFFSET(TfLiteTensor, type);
SAME_OFFSET(TfLiteTensor, data);
SAME_OFFSET(TfLiteTensor, dims);
SAME_OFFSET(TfLiteTensor, params);
SAME_OFFSET(TfLiteTensor, allocation_type);
SAME_OFFSET(TfLiteTensor, bytes);
SAME_OFFSET(TfLiteTensor, allocation);
SAME_OFFSET(TfLiteTensor, name);
SAME_OFFSET(TfLiteTensor, delegate);
SAME_OFFSET(TfLiteTensor, buffer_handle);
SAME_OFFSET(TfLiteTensor, data_is_stale);
SAME_OFFSET(TfLiteTensor, is_variable);
SAME_OFFSET(TfLiteTensor, quantization);
SAME_OFFSET(TfLiteTensor, sparsity);
SAME_OFFSET(TfLiteTensor, dims_signature);
static_assert(sizeof(litebnn::TfLiteTensor) == sizeof(::TfLiteTensor));

SAME_OFFSET(TfLiteNode, inputs);
SAME_OFFSET(TfLiteNode, outputs);
SAME_OFFSET(TfLiteNode, intermediates);
SAME_OFFSET(TfLiteNode, temporaries);
SAME_OFFSET(TfLiteNode, user_data);
SAME_OFFSET(TfLiteNode, builtin_data);
SAME_OFFSET(TfLiteNode, custom_initial_data);
SAME_OFFSET(TfLiteNode, custom_initial_data_size);
SAME_OFFSET(TfLiteNode, delegate);

SAME_OFFSET(TfLiteRegistration, init);
SAME_OFFSET(TfLiteRegistration, free);
SAME_OFFSET(TfLiteRegistration, prepare);
SAME_OFFSET(TfLiteRegistration, invoke);
SAME_OFFSET(TfLiteRegistration, profiling_string);
SAME_OFFSET(TfLiteRegistration, builtin_code);
SAME_OFFSET(TfLiteRegistration, custom_name);
SAME_OFFSET(TfLiteRegistration, version);
static_assert(sizeof(litebnn::TfLiteRegistration) >= sizeof(::TfLiteRegistration));

SAME_OFFSET(TfLiteDelegateParams, delegate);
SAME_OFFSET(TfLiteDelegateParams, nodes_to_replace);
SAME_OFFSET(TfLiteDelegateParams, input_tensors);
SAME_OFFSET(TfLiteDelegateParams, output_tensors);

SAME_OFFSET(TfLiteDelegate, data_);
SAME_OFFSET(TfLiteDelegate, Prepare);
SAME_OFFSET(TfLiteDelegate, CopyFromBufferHandle);
SAME_OFFSET(TfLiteDelegate, CopyToBufferHandle);
SAME_OFFSET(TfLiteDelegate, FreeBufferHandle);
SAME_OFFSET(TfLiteDelegate, flags);
static_assert(sizeof(litebnn::TfLiteDelegate) >= sizeof(::TfLiteDelegate));

SAME_OFFSET(TfLiteContext, tensors_size);
SAME_OFFSET(TfLiteContext, GetExecutionPlan);
SAME_OFFSET(TfLiteContext, tensors);
SAME_OFFSET(TfLiteContext, impl_);
SAME_OFFSET(TfLiteContext, ResizeTensor);
SAME_OFFSET(TfLiteContext, ReportError);
SAME_OFFSET(TfLiteContext, AddTensors);
SAME_OFFSET(TfLiteContext, GetNodeAndRegistration);
SAME_OFFSET(TfLiteContext, ReplaceNodeSubsetsWithDelegateKernels);
SAME_OFFSET(TfLiteContext, recommended_num_threads);

SAME_VALUE(kTfLiteOk);
SAME_VALUE(kTfLiteError);
SAME_VALUE(kTfLiteDelegateError);
SAME_VALUE(kTfLiteNoType);
SAME_VALUE(kTfLiteFloat32);
SAME_VALUE(kTfLiteInt32);
SAME_VALUE(kTfLiteUInt8);
SAME_VALUE(kTfLiteInt64);
SAME_VALUE(kTfLiteString);
SAME_VALUE(kTfLiteBool);
SAME_VALUE(kTfLiteInt16);
SAME_VALUE(kTfLiteInt8);
SAME_VALUE(kTfLiteFloat16);
SAME_VALUE(kTfLiteFloat64);
SAME_VALUE(kTfLiteMemNone);
SAME_VALUE(kTfLiteMmapRo);
SAME_VALUE(kTfLiteArenaRw);
SAME_VALUE(kTfLiteArenaRwPersistent);
SAME_VALUE(kTfLiteDynamic);
SAME_VALUE(kTfLitePersistentRo);
SAME_VALUE(kTfLiteCustom);
SAME_VALUE(kTfLiteDelegateFlagsAllowDynamicTensors);
static_assert(litebnn::kOptionalTensor == kTfLiteOptionalTensor);
static_assert(litebnn::kTfLiteNullBufferHandle == kTfLiteNullBufferHandle);
