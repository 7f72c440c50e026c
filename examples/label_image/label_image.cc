// Names what an image shows: a model, its labels and an image in, the best scores out. The flags are those of
// TensorFlow's program of this name, and --lcompute.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "common/error.h"
#include "common/flags.h"
#include "common/read_file.h"
#include "common/session.h"
#include "label_image/image.h"
#include "litebnn/litebnn.h"

namespace litebnn::examples {
namespace {

constexpr size_t kLargestImageFile = size_t{256} << 20;
constexpr size_t kLargestLabelsFile = size_t{16} << 20;

struct Settings {
  SessionOptions session;
  std::string image;
  std::string labels;
  float input_mean = 127.5f;
  float input_std = 127.5f;
  int num_results = 5;
  int count = 1;
  int warmup_runs = 2;
  bool verbose = false;
};

// How a model's input takes an image.
struct InputFormat {
  int height;
  int width;
  int channels;
};

InputFormat CheckInput(Session& session, const std::string& model) {
  if (session.num_inputs() != 1) {
    throw Error(Format("%s has %d inputs, expected 1", model.c_str(), session.num_inputs()));
  }
  const TfLiteTensor* input = session.input(0);
  const TfLiteType type = TfLiteTensorType(input);
  const bool image = TfLiteTensorNumDims(input) == 4 && TfLiteTensorDim(input, 0) == 1 &&
                     TfLiteTensorDim(input, 1) > 0 && TfLiteTensorDim(input, 2) > 0 &&
                     (TfLiteTensorDim(input, 3) == 1 || TfLiteTensorDim(input, 3) == 3);
  if (!image || (type != kTfLiteFloat32 && type != kTfLiteUInt8 && type != kTfLiteInt8)) {
    throw Error(Format("the input of %s is %s, expected float32, uint8 or int8 [1, height, width, 1 or 3]",
                       model.c_str(), Describe(input).c_str()));
  }
  return {TfLiteTensorDim(input, 1), TfLiteTensorDim(input, 2), TfLiteTensorDim(input, 3)};
}

// The number of scores of the model's output.
size_t CheckOutput(const Session& session, const std::string& model) {
  if (session.num_outputs() != 1) {
    throw Error(Format("%s has %d outputs, expected 1", model.c_str(), session.num_outputs()));
  }
  const TfLiteTensor* output = session.output(0);
  const TfLiteType type = TfLiteTensorType(output);
  const int rank = TfLiteTensorNumDims(output);
  bool scores = rank > 0;
  for (int i = 0; i + 1 < rank; ++i) scores = scores && TfLiteTensorDim(output, i) == 1;
  if (!scores || (type != kTfLiteFloat32 && type != kTfLiteUInt8 && type != kTfLiteInt8)) {
    throw Error(Format("the output of %s is %s, expected float32, uint8 or int8 [1, scores]", model.c_str(),
                       Describe(output).c_str()));
  }
  return static_cast<size_t>(TfLiteTensorDim(output, rank - 1));
}

std::vector<std::string> ReadLabels(const std::string& path) {
  const std::string text = ReadFile(path, "labels file", kLargestLabelsFile);
  std::vector<std::string> labels;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string label = text.substr(begin, end - begin);
    if (!label.empty() && label.back() == '\r') label.pop_back();
    labels.push_back(std::move(label));
    begin = end + 1;
  }
  while (!labels.empty() && labels.back().empty()) labels.pop_back();
  return labels;
}

template <class Integer>
std::vector<Integer> Quantize(const std::vector<float>& values, TfLiteQuantizationParams params) {
  std::vector<Integer> quantized;
  for (const float value : values) {
    const float steps = std::round(value / params.scale) + static_cast<float>(params.zero_point);
    quantized.push_back(static_cast<Integer>(
        std::clamp(steps, float{std::numeric_limits<Integer>::min()}, float{std::numeric_limits<Integer>::max()})));
  }
  return quantized;
}

template <class Values>
void CopyInto(TfLiteTensor* tensor, const Values& values) {
  if (TfLiteTensorCopyFromBuffer(tensor, values.data(), values.size() * sizeof(values[0])) != kTfLiteOk) {
    throw Error(Format("cannot fill the input %s", Describe(tensor).c_str()));
  }
}

// Fills the input with pixel values of 0 to 255, normalized and, where the input is quantized, in its own scale. A
// quantized input without a scale gets the pixels as they are, which int8 shifts by 128.
void FillInput(TfLiteTensor* input, std::vector<float> pixels, float mean, float deviation) {
  const TfLiteType type = TfLiteTensorType(input);
  TfLiteQuantizationParams params = TfLiteTensorQuantizationParams(input);
  if (type == kTfLiteFloat32 || params.scale != 0) {
    for (float& value : pixels) value = (value - mean) / deviation;
  } else {
    params = {1, type == kTfLiteInt8 ? -128 : 0};
  }
  if (type == kTfLiteFloat32) CopyInto(input, pixels);
  if (type == kTfLiteUInt8) CopyInto(input, Quantize<uint8_t>(pixels, params));
  if (type == kTfLiteInt8) CopyInto(input, Quantize<int8_t>(pixels, params));
}

template <class Integer>
std::vector<float> Dequantize(const void* data, size_t count, TfLiteQuantizationParams params) {
  const auto* values = static_cast<const Integer*>(data);
  std::vector<float> scores;
  for (size_t i = 0; i < count; ++i) {
    scores.push_back(params.scale * static_cast<float>(int{values[i]} - params.zero_point));
  }
  return scores;
}

// The scores as real numbers. A quantized output without a scale stands for 0 to 1.
std::vector<float> ReadScores(const TfLiteTensor* output, size_t count) {
  const TfLiteType type = TfLiteTensorType(output);
  const void* data = TfLiteTensorData(output);
  TfLiteQuantizationParams params = TfLiteTensorQuantizationParams(output);
  if (params.scale == 0) params = {1.0f / 255, type == kTfLiteInt8 ? -128 : 0};
  if (type == kTfLiteUInt8) return Dequantize<uint8_t>(data, count, params);
  if (type == kTfLiteInt8) return Dequantize<int8_t>(data, count, params);
  const auto* scores = static_cast<const float*>(data);
  return {scores, scores + count};
}

// Indices of the `count` best scores, the best first; NaN is the worst, and of equal scores the first is the better.
std::vector<size_t> Best(const std::vector<float>& scores, size_t count) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto rank = [&scores](size_t i) {
    return std::isnan(scores[i]) ? -std::numeric_limits<float>::infinity() : scores[i];
  };
  std::stable_sort(order.begin(), order.end(), [&rank](size_t a, size_t b) { return rank(a) > rank(b); });
  order.resize(std::min(order.size(), count));
  return order;
}

Image ReadImage(const std::string& path, int channels) {
  const std::string bytes = ReadFile(path, "image", kLargestImageFile);
  try {
    return DecodeImage(bytes, channels);
  } catch (const Error& error) {
    throw Error(Format("cannot decode the image %s: %s", path.c_str(), error.what()));
  }
}

void Run(const Settings& settings) {
  const std::string& model = settings.session.model;
  Session session(settings.session);
  const InputFormat format = CheckInput(session, model);
  const std::vector<std::string> labels =
      settings.labels.empty() ? std::vector<std::string>() : ReadLabels(settings.labels);
  const Image image = ReadImage(settings.image, format.channels);
  if (settings.verbose) {
    std::printf("TensorFlow Lite %s, litebnn %s\n", TfLiteVersion(), litebnn_version());
    std::printf("input: %s %s\n", TfLiteTensorName(session.input(0)), Describe(session.input(0)).c_str());
    std::printf("image: %d x %d, %d channels\n", image.width, image.height, image.channels);
  }
  FillInput(session.input(0), ResizeBilinear(image, format.height, format.width), settings.input_mean,
            settings.input_std);

  for (int i = 0; i < settings.warmup_runs; ++i) session.Invoke();
  session.ResetOpTimes();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < settings.count; ++i) session.Invoke();
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;

  // Some models compute the shape of their output, so it is known only now.
  const size_t num_scores = CheckOutput(session, model);
  if (!settings.labels.empty() && labels.size() != num_scores) {
    throw Error(Format("%s has %zu labels, expected %zu: one for each output of %s", settings.labels.c_str(),
                       labels.size(), num_scores, model.c_str()));
  }
  if (settings.verbose) {
    std::printf("output: %s %s\n", TfLiteTensorName(session.output(0)), Describe(session.output(0)).c_str());
  }
  std::printf("average time: %.3f ms\n", time.count() / settings.count);
  if (settings.session.profiling) std::printf("%s", FormatOpTimes(session.op_times()).c_str());

  const std::vector<float> scores = ReadScores(session.output(0), num_scores);
  for (const size_t i : Best(scores, static_cast<size_t>(settings.num_results))) {
    const std::string label = labels.empty() ? "" : " " + labels[i];
    std::printf("%g: %zu%s\n", static_cast<double>(scores[i]), i, label.c_str());
  }
}

void Main(int argc, char** argv) {
  Settings settings;
  settings.session.num_threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 4u));
  const std::vector<Flag> flags = {
      {"tflite_model", 'm', &settings.session.model, "the model"},
      {"image", 'i', &settings.image, "the image: BMP, PNG, JPEG or PPM"},
      {"labels", 'l', &settings.labels, "names of the outputs, one a line"},
      {"lcompute", 0, &settings.session.lcompute, "register litebnn's ops, which models with Lce ops need"},
      {"input_mean", 'b', &settings.input_mean, "subtracted from each pixel"},
      {"input_std", 's', &settings.input_std, "what each pixel is then divided by"},
      {"num_results", 'r', IntFlag{&settings.num_results, 1}, "how many results to print"},
      {"threads", 't', IntFlag{&settings.session.num_threads, 1, kMostThreads}, "threads to run on"},
      {"count", 'c', IntFlag{&settings.count, 1}, "runs to average the time of"},
      {"warmup_runs", 'w', IntFlag{&settings.warmup_runs, 0}, "runs before those"},
      {"xnnpack_delegate", 'x', &settings.session.xnnpack, "run float and quantized ops in XNNPACK"},
      {"external_delegate_path", 0, &settings.session.external_delegate, "delegate library to load"},
      {"profiling", 'p', &settings.session.profiling, "print the time of each op"},
      {"verbose", 'v', &settings.verbose, "print what is loaded"},
  };
  if (!ParseFlags(argc, argv, flags)) return;
  if (settings.session.model.empty()) throw Error("name the model with --tflite_model=FILE");
  if (settings.image.empty()) throw Error("name the image with --image=FILE");
  if (settings.input_std == 0) throw Error("--input_std=0: expected another number, pixels are divided by it");
  Run(settings);
}

}  // namespace
}  // namespace litebnn::examples

int main(int argc, char** argv) { return litebnn::examples::RunProgram(litebnn::examples::Main, argc, argv); }
