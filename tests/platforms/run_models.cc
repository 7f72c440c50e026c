// Runs models with LiteRT and litebnn libraries that are loaded by path. One process runs all models, because Wine
// starts slowly.
//
//   run_models LITERT LITEBNN FOLDER JOBS
//
// Each line of the file JOBS is a run: ISA MODEL INPUT OUTPUT TYPE BYTES DIMENSION... ISA is the instruction set for
// the delegate, or "folder". For "folder", the model is compiled in an environment that finds the accelerator in
// FOLDER. TYPE and the dimensions are those of the input, BYTES is the output's size.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/litert_api.h"
#include "kernels/platform/loaded_library.h"

namespace {

struct Job {
  std::string isa, model, input, output;
  int type = 0;
  size_t bytes = 0;
  std::vector<int32_t> dimensions;
};

void Require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

void* Open(const char* path) {
  std::string problem;
  void* library = litebnn::OpenLibrary(path, &problem);
  Require(library != nullptr, std::string(path) + ": " + problem);
  return library;
}

// Returns the address of a library's function, with the type with which the function is declared.
template <typename Function>
Function* Find(void* library, const char* name) {
  void* address = litebnn::FindSymbol(library, name);
  Require(address != nullptr, std::string("no ") + name);
  return reinterpret_cast<Function*>(address);
}

#define LITERT(name) Find<decltype(name)>(litert, #name)
#define TFLITE(name, result, ...) Find<result(__VA_ARGS__)>(litert, "TfLite" #name)

std::string Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Require(file.is_open(), "cannot read " + path);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

void Write(const std::string& path, const void* data, size_t bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  file.close();
  Require(!file.fail(), "cannot write " + path);
}

// Runs a model with TensorFlow Lite's C API and litebnn's delegate. This API applies no delegate by itself.
void RunByDelegate(void* litert, void* ours, const Job& job) {
  const std::string input = Read(job.input);
  void* model = TFLITE(ModelCreateFromFile, void*, const char*)(job.model.c_str());
  Require(model != nullptr, "the model cannot be read");
  void* options = TFLITE(InterpreterOptionsCreate, void*)();
  TFLITE(InterpreterOptionsSetNumThreads, void, void*, int)(options, 2);
  const char* keys[] = {"isa", "num_threads"};
  const char* values[] = {job.isa.c_str(), "2"};
  const auto create = Find<void*(const char* const*, const char* const*, size_t, void (*)(const char*))>(
      ours, "tflite_plugin_create_delegate");
  void* delegate = create(keys, values, 2, nullptr);
  Require(delegate != nullptr, "no delegate for " + job.isa);
  TFLITE(InterpreterOptionsAddDelegate, void, void*, void*)(options, delegate);
  void* interpreter = TFLITE(InterpreterCreate, void*, const void*, const void*)(model, options);
  Require(interpreter != nullptr, "no interpreter");
  Require(TFLITE(InterpreterAllocateTensors, int, void*)(interpreter) == 0, "the tensors cannot be allocated");
  void* tensor = TFLITE(InterpreterGetInputTensor, void*, void*, int)(interpreter, 0);
  Require(TFLITE(TensorByteSize, size_t, const void*)(tensor) == input.size(), "the input has another size");
  std::memcpy(TFLITE(TensorData, void*, const void*)(tensor), input.data(), input.size());
  Require(TFLITE(InterpreterInvoke, int, void*)(interpreter) == 0, "the model does not run");
  const void* result = TFLITE(InterpreterGetOutputTensor, const void*, const void*, int)(interpreter, 0);
  Require(TFLITE(TensorByteSize, size_t, const void*)(result) == job.bytes, "the output has another size");
  Write(job.output, TFLITE(TensorData, void*, const void*)(result), job.bytes);
  TFLITE(InterpreterDelete, void, void*)(interpreter);
  Find<void(void*)>(ours, "tflite_plugin_destroy_delegate")(delegate);
  TFLITE(InterpreterOptionsDelete, void, void*)(options);
  TFLITE(ModelDelete, void, void*)(model);
}

LiteRtTensorBuffer MakeBuffer(void* litert, LiteRtEnvironment environment, int type, size_t bytes,
                              const std::vector<int32_t>& dimensions) {
  LiteRtRankedTensorType ranked = {};
  ranked.element_type = type;
  ranked.layout.rank = static_cast<unsigned int>(dimensions.size()) & 0x7f;
  std::memcpy(ranked.layout.dimensions, dimensions.data(), dimensions.size() * sizeof(int32_t));
  LiteRtTensorBuffer buffer = nullptr;
  const LiteRtStatus status =
      LITERT(LiteRtCreateManagedTensorBuffer)(environment, kLiteRtTensorBufferTypeHostMemory, &ranked, bytes, &buffer);
  Require(status == kLiteRtStatusOk, "no buffer");
  return buffer;
}

// Runs a model with LiteRT's CompiledModel, which finds litebnn's accelerator in `folder`.
void RunByFolder(void* litert, const std::string& folder, const Job& job) {
  constexpr int kRuntimeLibraryDir = 22, kString = 8, kRead = 0, kUInt8 = 3;
  const std::string input = Read(job.input), content = Read(job.model);
  LiteRtEnvOption option = {kRuntimeLibraryDir, {kString, 0}};
  const char* text = folder.c_str();
  std::memcpy(&option.value.int_value, &text, sizeof(text));
  LiteRtEnvironment environment = nullptr;
  Require(LITERT(LiteRtCreateEnvironment)(1, &option, &environment) == kLiteRtStatusOk, "no environment");
  LiteRtModel model = nullptr;
  Require(LITERT(LiteRtCreateModelFromBuffer)(environment, content.data(), content.size(), &model) == kLiteRtStatusOk,
          "the model cannot be read");
  LiteRtOptions options = nullptr;
  Require(LITERT(LiteRtCreateOptions)(&options) == kLiteRtStatusOk, "no options");
  LITERT(LiteRtSetOptionsHardwareAccelerators)(options, kLiteRtHwAcceleratorCpu);
  LiteRtCompiledModel compiled = nullptr;
  Require(LITERT(LiteRtCreateCompiledModel)(environment, model, options, &compiled) == kLiteRtStatusOk,
          "the model cannot be compiled");
  LiteRtTensorBuffer source = MakeBuffer(litert, environment, job.type, input.size(), job.dimensions);
  LiteRtTensorBuffer result = MakeBuffer(litert, environment, kUInt8, job.bytes, {static_cast<int32_t>(job.bytes)});
  void* address = nullptr;
  Require(LITERT(LiteRtLockTensorBuffer)(source, &address, kLiteRtTensorBufferLockModeWrite) == kLiteRtStatusOk,
          "the input cannot be filled");
  std::memcpy(address, input.data(), input.size());
  LITERT(LiteRtUnlockTensorBuffer)(source);
  Require(LITERT(LiteRtRunCompiledModel)(compiled, 0, 1, &source, 1, &result) == kLiteRtStatusOk,
          "the model does not run");
  Require(LITERT(LiteRtLockTensorBuffer)(result, &address, kRead) == kLiteRtStatusOk, "the output cannot be read");
  Write(job.output, address, job.bytes);
  LITERT(LiteRtUnlockTensorBuffer)(result);
  for (LiteRtTensorBuffer buffer : {source, result}) LITERT(LiteRtDestroyTensorBuffer)(buffer);
  LITERT(LiteRtDestroyCompiledModel)(compiled);
  LITERT(LiteRtDestroyOptions)(options);
  LITERT(LiteRtDestroyModel)(model);
  LITERT(LiteRtDestroyEnvironment)(environment);
}

Job Parse(const std::string& line) {
  Job job;
  std::istringstream words(line);
  words >> job.isa >> job.model >> job.input >> job.output >> job.type >> job.bytes;
  Require(!words.fail(), "expected ISA MODEL INPUT OUTPUT TYPE BYTES DIMENSION..., found " + line);
  for (int32_t dimension = 0; words >> dimension;) job.dimensions.push_back(dimension);
  return job;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  int failed = 0;
  void* litert = Open(argv[1]);
  void* ours = Open(argv[2]);
  std::printf("%s\n", Find<const char*()>(ours, "litebnn_version")());
  std::ifstream jobs(argv[4]);
  for (std::string line; std::getline(jobs, line);) {
    try {
      const Job job = Parse(line);
      job.isa == "folder" ? RunByFolder(litert, argv[3], job) : RunByDelegate(litert, ours, job);
    } catch (const std::exception& error) {
      std::printf("%s: %s\n", line.c_str(), error.what());
      ++failed;
    }
  }
  return failed == 0 ? 0 : 1;
}
