// The declarations of TensorFlow Lite Micro that ops/micro/tflm uses. TFLM_IS_NEW selects those of releases since
// October 2026; without it they are those of earlier releases. The packages on PyPI have no headers.
// tests/micro/test_tflm.py runs models in the interpreters of these packages.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef TFLM_IS_NEW
namespace tflite {
namespace micro {
#endif

typedef enum TfLiteStatus { kTfLiteOk = 0, kTfLiteError = 1 } TfLiteStatus;
typedef enum { kTfLiteFloat32 = 1, kTfLiteInt32 = 2, kTfLiteBool = 6, kTfLiteInt8 = 9, kTfLiteInt4 = 18 } TfLiteType;
typedef enum TfLiteAllocationType { kTfLiteMemNone = 0, kTfLiteMmapRo = 1, kTfLiteNonCpu = 8 } TfLiteAllocationType;

typedef struct TfLiteIntArray {
  int size;
  int data[];
} TfLiteIntArray;

typedef union TfLitePtrUnion {
  void* data;
} TfLitePtrUnion;

typedef struct TfLiteTensor {
  struct {
    int type;
    void* params;
  } quantization;
  struct {
    float scale;
    int32_t zero_point;
  } params;
  TfLitePtrUnion data;
  TfLiteIntArray* dims;
  size_t bytes;
  TfLiteType type;
  TfLiteAllocationType allocation_type;
  bool is_variable;
} TfLiteTensor;

typedef struct TfLiteEvalTensor {
  TfLitePtrUnion data;
  TfLiteIntArray* dims;
  TfLiteType type;
} TfLiteEvalTensor;

typedef struct TfLiteNode {
  TfLiteIntArray* inputs;
  TfLiteIntArray* outputs;
  TfLiteIntArray* intermediates;
  void* user_data;
  void* builtin_data;
  const void* custom_initial_data;
  int custom_initial_data_size;
} TfLiteNode;

typedef struct TfLiteContext {
#ifndef TFLM_IS_NEW
  size_t tensors_size;
  void* GetExecutionPlan;
  TfLiteTensor* tensors;
#endif
  void* impl_;
} TfLiteContext;

struct TFLMRegistration {
  void* (*init)(TfLiteContext* context, const char* buffer, size_t length);
  void (*free)(TfLiteContext* context, void* buffer);
  TfLiteStatus (*prepare)(TfLiteContext* context, TfLiteNode* node);
  TfLiteStatus (*invoke)(TfLiteContext* context, TfLiteNode* node);
  void (*reset)(TfLiteContext* context, void* buffer);
  int32_t builtin_code;
  const char* custom_name;
};

#ifndef TFLM_IS_NEW
namespace tflite {
#endif

class MicroContext {
 public:
  virtual ~MicroContext() = default;
  virtual void* AllocatePersistentBuffer(size_t bytes) = 0;
  virtual TfLiteStatus RequestScratchBufferInArena(size_t bytes, int* buffer_idx) = 0;
  virtual void* GetScratchBuffer(int buffer_idx) = 0;
  virtual TfLiteTensor* AllocateTempTfLiteTensor(int tensor_idx) = 0;
  virtual void DeallocateTempTfLiteTensor(TfLiteTensor* tensor) = 0;
  virtual uint8_t* AllocateTempBuffer(size_t size, size_t alignment) = 0;
  virtual void DeallocateTempBuffer(uint8_t* buffer) = 0;
  virtual TfLiteEvalTensor* GetEvalTensor(int tensor_idx) = 0;
};

inline MicroContext* GetMicroContext(const TfLiteContext* context) {
  return reinterpret_cast<MicroContext*>(context->impl_);
}

#ifdef TFLM_IS_NEW
}  // namespace micro
#endif
}  // namespace tflite
