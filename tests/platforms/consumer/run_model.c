/* A program of a user of the development kit: it runs a model with one input and one output on TensorFlow Lite's C API.
 *   run_model MODEL INPUT OUTPUT */
#include <litebnn/litebnn.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct TfLiteModel TfLiteModel;
typedef struct TfLiteInterpreterOptions TfLiteInterpreterOptions;
typedef struct TfLiteInterpreter TfLiteInterpreter;
typedef struct TfLiteTensor TfLiteTensor;

/* The part of tensorflow/lite/c/c_api.h that is used. */
TfLiteModel* TfLiteModelCreateFromFile(const char* path);
TfLiteInterpreterOptions* TfLiteInterpreterOptionsCreate(void);
void TfLiteInterpreterOptionsAddDelegate(TfLiteInterpreterOptions* options, struct TfLiteDelegate* delegate);
TfLiteInterpreter* TfLiteInterpreterCreate(const TfLiteModel* model, const TfLiteInterpreterOptions* options);
void TfLiteInterpreterDelete(TfLiteInterpreter* interpreter);
int TfLiteInterpreterAllocateTensors(TfLiteInterpreter* interpreter);
int TfLiteInterpreterInvoke(TfLiteInterpreter* interpreter);
TfLiteTensor* TfLiteInterpreterGetInputTensor(const TfLiteInterpreter* interpreter, int index);
const TfLiteTensor* TfLiteInterpreterGetOutputTensor(const TfLiteInterpreter* interpreter, int index);
size_t TfLiteTensorByteSize(const TfLiteTensor* tensor);
void* TfLiteTensorData(const TfLiteTensor* tensor);

static void Require(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "%s\n", what);
  exit(1);
}

int main(int argc, char** argv) {
  Require(argc == 4, "expected MODEL INPUT OUTPUT");
  TfLiteModel* model = TfLiteModelCreateFromFile(argv[1]);
  Require(model != NULL, "the model cannot be read");
  struct TfLiteDelegate* delegate = tflite_plugin_create_delegate(NULL, NULL, 0, NULL);
  TfLiteInterpreterOptions* options = TfLiteInterpreterOptionsCreate();
  TfLiteInterpreterOptionsAddDelegate(options, delegate);
  TfLiteInterpreter* interpreter = TfLiteInterpreterCreate(model, options);
  Require(interpreter != NULL && TfLiteInterpreterAllocateTensors(interpreter) == 0, "the model is not taken");

  TfLiteTensor* input = TfLiteInterpreterGetInputTensor(interpreter, 0);
  FILE* file = fopen(argv[2], "rb");
  Require(file != NULL && fread(TfLiteTensorData(input), TfLiteTensorByteSize(input), 1, file) == 1, "no input");
  fclose(file);
  Require(TfLiteInterpreterInvoke(interpreter) == 0, "the model does not run");
  const TfLiteTensor* output = TfLiteInterpreterGetOutputTensor(interpreter, 0);
  file = fopen(argv[3], "wb");
  Require(file != NULL && fwrite(TfLiteTensorData(output), TfLiteTensorByteSize(output), 1, file) == 1, "no output");
  fclose(file);
  TfLiteInterpreterDelete(interpreter);
  tflite_plugin_destroy_delegate(delegate);
  printf("%s\n", litebnn_version());
  return 0;
}
