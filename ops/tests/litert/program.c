/* A C program that links LiteRT, runs one model in CompiledModel, and registers litebnn's accelerator in a given way.
 * tests/ops/test_litert.py compiles it against the libLiteRt.so of an installed package.
 *
 *   program MODEL INPUT OUTPUT OPTIONS folder FOLDER   the environment loads the accelerator from the folder
 *   program MODEL INPUT OUTPUT OPTIONS first FOLDER    the accelerator is registered before LiteRT's own for the CPU
 *   program MODEL INPUT OUTPUT OPTIONS last FOLDER     the accelerator is registered after LiteRT's own for the CPU
 *   program MODEL INPUT OUTPUT OPTIONS none FOLDER     the accelerator is not registered
 *
 * INPUT and OUTPUT are files with the bytes of one tensor; OPTIONS is the text of the model's options. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "litebnn/litebnn.h"

/* The declarations this program uses from LiteRT's public C headers, which LiteRT's packages do not contain. */
typedef struct LiteRtEnvironmentT* LiteRtEnvironment;
typedef struct LiteRtModelT* LiteRtModel;
typedef struct LiteRtOptionsT* LiteRtOptions;
typedef struct LiteRtOpaqueOptionsT* LiteRtOpaqueOptions;
typedef struct LiteRtCompiledModelT* LiteRtCompiledModel;
typedef struct LiteRtSubgraphT* LiteRtSubgraph;
typedef struct LiteRtTensorT* LiteRtTensor;
typedef struct LiteRtTensorBufferT* LiteRtTensorBuffer;
typedef struct LiteRtTensorBufferRequirementsT* LiteRtTensorBufferRequirements;
typedef struct {
  int32_t members[64]; /* larger than the structure of any LiteRT version */
} LiteRtRankedTensorType;
typedef struct {
  int type;
  union {
    int64_t int_value;
    const char* str_value;
  } value;
} LiteRtAny;
typedef struct {
  int tag;
  LiteRtAny value;
} LiteRtEnvOption;
enum { kRuntimeLibraryDir = 22, kAutoRegisterAccelerators = 24 };
enum { kAnyTypeInt = 2, kAnyTypeString = 8 };
enum { kHwAcceleratorCpu = 1, kHwAcceleratorGpu = 2, kHwAcceleratorNpu = 4 };
enum { kLockModeRead = 0, kLockModeWrite = 1 };

int LiteRtCreateEnvironment(int count, const LiteRtEnvOption* options, LiteRtEnvironment* environment);
void LiteRtDestroyEnvironment(LiteRtEnvironment environment);
int LiteRtCreateModelFromFile(LiteRtEnvironment environment, const char* path, LiteRtModel* model);
void LiteRtDestroyModel(LiteRtModel model);
int LiteRtGetModelSubgraph(LiteRtModel model, size_t index, LiteRtSubgraph* subgraph);
int LiteRtGetSubgraphInput(LiteRtSubgraph subgraph, size_t index, LiteRtTensor* tensor);
int LiteRtGetSubgraphOutput(LiteRtSubgraph subgraph, size_t index, LiteRtTensor* tensor);
int LiteRtGetRankedTensorType(LiteRtTensor tensor, LiteRtRankedTensorType* type);
int LiteRtCreateOptions(LiteRtOptions* options);
void LiteRtDestroyOptions(LiteRtOptions options);
int LiteRtSetOptionsHardwareAccelerators(LiteRtOptions options, int accelerators);
int LiteRtCreateOpaqueOptions(const char* identifier, void* payload, void (*destroy)(void*),
                              LiteRtOpaqueOptions* options);
int LiteRtAddOpaqueOptions(LiteRtOptions options, LiteRtOpaqueOptions opaque_options);
int LiteRtCreateCompiledModel(LiteRtEnvironment environment, LiteRtModel model, LiteRtOptions options,
                              LiteRtCompiledModel* compiled_model);
void LiteRtDestroyCompiledModel(LiteRtCompiledModel compiled_model);
int LiteRtGetCompiledModelInputBufferRequirements(LiteRtCompiledModel compiled_model, size_t signature, size_t index,
                                                  LiteRtTensorBufferRequirements* requirements);
int LiteRtGetCompiledModelOutputBufferRequirements(LiteRtCompiledModel compiled_model, size_t signature, size_t index,
                                                   LiteRtTensorBufferRequirements* requirements);
int LiteRtCreateManagedTensorBufferFromRequirements(LiteRtEnvironment environment, const LiteRtRankedTensorType* type,
                                                    LiteRtTensorBufferRequirements requirements,
                                                    LiteRtTensorBuffer* buffer);
void LiteRtDestroyTensorBuffer(LiteRtTensorBuffer buffer);
int LiteRtGetTensorBufferPackedSize(LiteRtTensorBuffer buffer, size_t* size);
int LiteRtLockTensorBuffer(LiteRtTensorBuffer buffer, void** address, int mode);
int LiteRtUnlockTensorBuffer(LiteRtTensorBuffer buffer);
int LiteRtRunCompiledModel(LiteRtCompiledModel compiled_model, size_t signature, size_t inputs_count,
                           LiteRtTensorBuffer* inputs, size_t outputs_count, LiteRtTensorBuffer* outputs);

static void Check(int status, const char* call) {
  if (status == 0) return;
  fprintf(stderr, "program: %s gives %d\n", call, status);
  exit(1);
}
#define CHECK(call) Check(call, #call)

static void Copy(LiteRtTensorBuffer buffer, const char* path, int mode) {
  size_t size;
  void* address;
  FILE* file = fopen(path, mode == kLockModeWrite ? "rb" : "wb");
  CHECK(file == NULL);
  CHECK(LiteRtGetTensorBufferPackedSize(buffer, &size));
  CHECK(LiteRtLockTensorBuffer(buffer, &address, mode));
  CHECK((mode == kLockModeWrite ? fread(address, 1, size, file) : fwrite(address, 1, size, file)) != size);
  CHECK(LiteRtUnlockTensorBuffer(buffer));
  fclose(file);
}

int main(int argc, char** argv) {
  CHECK(argc != 7);
  const char *model_path = argv[1], *input_path = argv[2], *output_path = argv[3], *way = argv[5], *folder = argv[6];
  const int first = strcmp(way, "first") == 0, last = strcmp(way, "last") == 0;

  const LiteRtEnvOption folder_option = {kRuntimeLibraryDir, {kAnyTypeString, {.str_value = folder}}};
  const int64_t others = kHwAcceleratorGpu | kHwAcceleratorNpu;
  const LiteRtEnvOption without_cpu = {kAutoRegisterAccelerators, {kAnyTypeInt, {.int_value = others}}};
  const LiteRtEnvOption environment_options[] = {folder_option, without_cpu};
  LiteRtEnvironment environment;
  CHECK(LiteRtCreateEnvironment(first ? 2 : 1, environment_options, &environment));
  if (first || last) CHECK(litebnn_register_accelerator(environment));

  LiteRtModel model;
  CHECK(LiteRtCreateModelFromFile(environment, model_path, &model));
  LiteRtOptions options;
  CHECK(LiteRtCreateOptions(&options));
  CHECK(LiteRtSetOptionsHardwareAccelerators(options, kHwAcceleratorCpu));
  char* text = malloc(strlen(argv[4]) + 1);
  LiteRtOpaqueOptions opaque_options;
  CHECK(LiteRtCreateOpaqueOptions("litebnn", strcpy(text, argv[4]), free, &opaque_options));
  CHECK(LiteRtAddOpaqueOptions(options, opaque_options));
  LiteRtCompiledModel compiled_model;
  CHECK(LiteRtCreateCompiledModel(environment, model, options, &compiled_model));

  LiteRtSubgraph subgraph;
  LiteRtTensor input_tensor, output_tensor;
  LiteRtRankedTensorType input_type, output_type;
  LiteRtTensorBufferRequirements input_requirements, output_requirements;
  LiteRtTensorBuffer input, output;
  CHECK(LiteRtGetModelSubgraph(model, 0, &subgraph));
  CHECK(LiteRtGetSubgraphInput(subgraph, 0, &input_tensor));
  CHECK(LiteRtGetSubgraphOutput(subgraph, 0, &output_tensor));
  CHECK(LiteRtGetRankedTensorType(input_tensor, &input_type));
  CHECK(LiteRtGetRankedTensorType(output_tensor, &output_type));
  CHECK(LiteRtGetCompiledModelInputBufferRequirements(compiled_model, 0, 0, &input_requirements));
  CHECK(LiteRtGetCompiledModelOutputBufferRequirements(compiled_model, 0, 0, &output_requirements));
  CHECK(LiteRtCreateManagedTensorBufferFromRequirements(environment, &input_type, input_requirements, &input));
  CHECK(LiteRtCreateManagedTensorBufferFromRequirements(environment, &output_type, output_requirements, &output));

  Copy(input, input_path, kLockModeWrite);
  CHECK(LiteRtRunCompiledModel(compiled_model, 0, 1, &input, 1, &output));
  Copy(output, output_path, kLockModeRead);

  LiteRtDestroyTensorBuffer(input);
  LiteRtDestroyTensorBuffer(output);
  LiteRtDestroyCompiledModel(compiled_model);
  LiteRtDestroyOptions(options);
  LiteRtDestroyModel(model);
  LiteRtDestroyEnvironment(environment);
  return 0;
}
