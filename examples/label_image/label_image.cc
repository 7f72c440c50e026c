// Classifies an image: prints the best scores of a model with their labels. The program takes the flags of TensorFlow's
// program of the same name, and the additional flag --lcompute.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <numeric>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "common/error.h"
#include "common/files.h"
#include "common/flags.h"
#include "common/session.h"
#include "label_image/image.h"
#include "label_image/metadata.h"
#include "litebnn/litebnn.h"

namespace litebnn::programs {
namespace {

constexpr size_t kLargestImageFile = size_t{256} << 20;
constexpr size_t kLargestLabelsFile = size_t{16} << 20;

constexpr float kNotGiven = std::numeric_limits<float>::quiet_NaN();
constexpr float kMean = 127.5f;
constexpr float kDeviation = 127.5f;

struct Settings {
  SessionOptions session;
  std::string image;
  std::string labels;
  // The value of the flag --input_mean, or NaN if the user does not give it. Without it, the mean is that of the
  // model's metadata or the constant kMean. The same holds for --input_std and the deviation.
  float input_mean = kNotGiven;
  float input_std = kNotGiven;
  int num_results = 5;
  int count = 1;
  int warmup_runs = 2;
  bool verbose = false;
};

// The image size and the number of channels of a model's input.
struct InputFormat {
  int height;
  int width;
  int channels;
};

// Throws Error unless the model has exactly one input (or output), and its type and shape are those of an image (or of
// scores). The text `what` is "input" or "output", and `shape` describes the expected shape.
void CheckTensor(const std::vector<Tensor>& tensors, const char* what, const std::string& model, const char* shape,
                 bool (*fits)(const std::vector<int>& shape)) {
  if (tensors.size() != 1) {
    throw Error(Format("%s has %zu %ss, expected 1", model.c_str(), tensors.size(), what));
  }
  const ElementType type = tensors[0].type;
  const bool known = type == ElementType::kFloat32 || type == ElementType::kUInt8 || type == ElementType::kInt8;
  if (!known || !fits(tensors[0].shape)) {
    throw Error(Format("the %s of %s is %s, expected float32, uint8 or int8 %s", what, model.c_str(),
                       Describe(tensors[0]).c_str(), shape));
  }
}

InputFormat CheckInput(const Session& session, const std::string& model) {
  const std::vector<Tensor> inputs = session.inputs();
  CheckTensor(inputs, "input", model, "[1, height, width, 1 or 3]", [](const std::vector<int>& shape) {
    return shape.size() == 4 && shape[0] == 1 && shape[1] > 0 && shape[2] > 0 && (shape[3] == 1 || shape[3] == 3);
  });
  return {inputs[0].shape[1], inputs[0].shape[2], inputs[0].shape[3]};
}

// Returns the number of scores in the model's output.
size_t CheckOutput(const Session& session, const std::string& model) {
  const std::vector<Tensor> outputs = session.outputs();
  CheckTensor(outputs, "output", model, "[1, scores]", [](const std::vector<int>& shape) {
    return !shape.empty() && std::all_of(shape.begin(), shape.end() - 1, [](int size) { return size == 1; });
  });
  return static_cast<size_t>(outputs[0].shape.back());
}

// Splits the text of the file `name` into labels, one a line. Skips the byte order mark of UTF-8, which some editors
// write.
std::vector<std::string> SplitLabels(const std::string& text, const std::string& name) {
  if (text.rfind("\xff\xfe", 0) == 0 || text.rfind("\xfe\xff", 0) == 0 || text.find('\0') != std::string::npos) {
    throw Error(name + " is no text in UTF-8");
  }
  std::vector<std::string> labels;
  for (size_t begin = text.rfind("\xef\xbb\xbf", 0) == 0 ? 3 : 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string label = text.substr(begin, end - begin);
    if (!label.empty() && label.back() == '\r') label.pop_back();
    labels.push_back(Printable(std::move(label)));
    begin = end + 1;
  }
  while (!labels.empty() && labels.back().empty()) labels.pop_back();
  return labels;
}

// Quantization parameters of a tensor.
struct Scale {
  float scale;
  int zero_point;
};

// The means that are subtracted from pixels, and the deviations by which pixels are then divided: one for all channels,
// or one for each channel.
struct Normalization {
  std::vector<float> mean;
  std::vector<float> deviation;
};

Normalization NormalizationOf(const Settings& settings, const Metadata& metadata, const InputFormat& format) {
  Normalization found = {{kMean}, {kDeviation}};
  if (!metadata.mean.empty()) found = {metadata.mean, metadata.deviation};
  if (!std::isnan(settings.input_mean)) found.mean = {settings.input_mean};
  if (!std::isnan(settings.input_std)) found.deviation = {settings.input_std};
  const auto channels = static_cast<size_t>(format.channels);
  for (const std::vector<float>& numbers : {found.mean, found.deviation}) {
    if (numbers.size() != 1 && numbers.size() != channels) {
      throw Error(Format("%s: its metadata normalizes %zu channels, expected 1 or %zu", settings.session.model.c_str(),
                         numbers.size(), channels));
    }
  }
  const auto are_finite = [](const std::vector<float>& numbers) {
    return std::all_of(numbers.begin(), numbers.end(), [](float number) { return std::isfinite(number); });
  };
  if (!are_finite(found.mean) || !are_finite(found.deviation)) {
    throw Error(settings.session.model + ": its metadata normalizes pixels by a number that is not finite");
  }
  if (std::find(found.deviation.begin(), found.deviation.end(), 0.0f) != found.deviation.end()) {
    throw Error(settings.session.model + ": its metadata divides pixels by 0");
  }
  return found;
}

// Converts pixel values to values of a model's input: normalized and, for a quantized input, quantized. A quantized
// input without a scale gets the pixels themselves, shifted by -128 for int8.
class PixelConversion {
 public:
  PixelConversion(const Tensor& input, const Normalization& normalization)
      : normalization_(normalization), scale_{input.scale, input.zero_point} {
    if (input.type == ElementType::kFloat32 || input.scale != 0) return;
    normalization_ = {{0}, {1}};
    scale_ = {1, input.type == ElementType::kInt8 ? -128 : 0};
  }

  template <class T>
  T Convert(float pixel, size_t channel) const {
    const auto& [mean, deviation] = normalization_;
    const float value = (pixel - mean[channel % mean.size()]) / deviation[channel % deviation.size()];
    if constexpr (std::is_integral_v<T>) {
      const float level = std::round(value / scale_.scale) + static_cast<float>(scale_.zero_point);
      // The function fmax replaces NaN, which a damaged scale causes and which has no integer.
      return static_cast<T>(
          std::fmin(std::fmax(level, float{std::numeric_limits<T>::min()}), float{std::numeric_limits<T>::max()}));
    } else {
      return value;
    }
  }

 private:
  Normalization normalization_;
  Scale scale_;
};

// The values of a model's input. Each pixel is converted directly to a value of type T, so that a quantized input needs
// no image of floats.
template <class T>
std::vector<T> InputValues(const Image& image, const Metadata& metadata, const InputFormat& format,
                           const PixelConversion& conversion) {
  const auto convert = [&conversion](float pixel, size_t channel) { return conversion.Convert<T>(pixel, channel); };
  if (metadata.crop != 0) {
    const Image square = CenterCrop(image, metadata.crop);
    return Resize<T>(square, Bicubic(square, format.height, format.width), convert);
  }
  if (image.height != format.height || image.width != format.width) {
    return Resize<T>(image, Bilinear(image, format.height, format.width), convert);
  }
  // A pixel has one of 256 values in each channel, so a table for each channel has all converted values.
  const auto channels = static_cast<size_t>(image.channels);
  std::vector<std::array<T, 256>> tables(channels);
  for (size_t c = 0; c < channels; ++c) {
    for (size_t pixel = 0; pixel < 256; ++pixel) tables[c][pixel] = convert(static_cast<float>(pixel), c);
  }
  std::vector<T> values;
  values.reserve(image.pixels.size());
  for (size_t i = 0; i < image.pixels.size(); ++i) values.push_back(tables[i % channels][image.pixels[i]]);
  return values;
}

void FillInput(Session& session, const Image& image, const Metadata& metadata, const InputFormat& format,
               const Normalization& normalization) {
  const Tensor input = session.inputs()[0];
  const PixelConversion conversion(input, normalization);
  const auto fill = [&](auto type) {
    session.FillInput(0, InputValues<decltype(type)>(image, metadata, format, conversion).data());
  };
  if (input.type == ElementType::kFloat32) fill(float{});
  if (input.type == ElementType::kUInt8) fill(uint8_t{});
  if (input.type == ElementType::kInt8) fill(int8_t{});
}

template <class Integer>
std::vector<float> Dequantize(const void* data, size_t count, Scale scale) {
  const auto* values = static_cast<const Integer*>(data);
  std::vector<float> scores;
  for (size_t i = 0; i < count; ++i) {
    scores.push_back(scale.scale * static_cast<float>(int{values[i]} - scale.zero_point));
  }
  return scores;
}

// Returns the scores as real numbers. The integers of a quantized output without a scale are mapped to 0 to 1.
std::vector<float> ReadScores(Session& session, size_t count) {
  const Tensor output = session.outputs()[0];
  const void* data = session.OutputData(0);
  Scale scale = {output.scale, output.zero_point};
  if (scale.scale == 0) scale = {1.0f / 255, output.type == ElementType::kInt8 ? -128 : 0};
  if (output.type == ElementType::kUInt8) return Dequantize<uint8_t>(data, count, scale);
  if (output.type == ElementType::kInt8) return Dequantize<int8_t>(data, count, scale);
  const auto* scores = static_cast<const float*>(data);
  return {scores, scores + count};
}

// Returns the indices of the `count` best scores, best first. NaN is the worst score; equal scores keep their order.
std::vector<size_t> Best(const std::vector<float>& scores, size_t count) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto rank = [&scores](size_t i) {
    return std::isnan(scores[i]) ? -std::numeric_limits<float>::infinity() : scores[i];
  };
  std::sort(order.begin(), order.end(),
            [&rank](size_t a, size_t b) { return rank(a) > rank(b) || (rank(a) == rank(b) && a < b); });
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

Metadata ReadMetadataOf(const std::string& model) {
  try {
    return ReadMetadata(ReadModel(model));
  } catch (const Error& error) {
    throw Error(model + ": " + error.what());
  }
}

void Run(const Settings& settings) {
  const std::string& model = settings.session.model;
  const std::unique_ptr<Session> loaded = LoadSession(settings.session);
  const Metadata metadata = ReadMetadataOf(model);
  Session& session = *loaded;
  const InputFormat format = CheckInput(session, model);
  const bool labels_given = !settings.labels.empty();
  const std::string labels_name = labels_given ? settings.labels : metadata.labels_name;
  const std::vector<std::string> labels = SplitLabels(
      labels_given ? ReadFile(settings.labels, "labels file", kLargestLabelsFile) : metadata.labels, labels_name);
  const Normalization normalization = NormalizationOf(settings, metadata, format);
  const Image image = ReadImage(settings.image, format.channels);
  if (settings.verbose) {
    std::printf("%s, litebnn %s\n", RuntimeName().c_str(), litebnn_version());
    std::printf("input: %s %s\n", Printable(session.inputs()[0].name).c_str(), Describe(session.inputs()[0]).c_str());
    std::printf("image: %d x %d, %d channels\n", image.width, image.height, image.channels);
  }
  FillInput(session, image, metadata, format, normalization);

  for (int i = 0; i < settings.warmup_runs; ++i) session.Invoke();
  session.ResetOpTimes();
  double milliseconds = 0;
  for (int i = 0; i < settings.count; ++i) milliseconds += session.Invoke();

  // The output is checked after the run, because some models compute its shape while they run.
  const size_t num_scores = CheckOutput(session, model);
  if (!labels_name.empty() && labels.size() != num_scores) {
    throw Error(Format("%s has %zu labels, expected %zu: one for each output of %s", labels_name.c_str(), labels.size(),
                       num_scores, model.c_str()));
  }
  if (settings.verbose) {
    std::printf("output: %s %s\n", Printable(session.outputs()[0].name).c_str(),
                Describe(session.outputs()[0]).c_str());
  }
  std::printf("average time: %.3f ms\n", milliseconds / settings.count);
  if (settings.session.profiling) std::printf("%s", FormatOpTimes(session.op_times()).c_str());

  const std::vector<float> scores = ReadScores(session, num_scores);
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
      {"labels", 'l', &settings.labels, "names of the outputs, one a line; by default the model's own"},
      {"lcompute", 0, &settings.session.lcompute, "run litebnn's custom ops"},
      {"input_mean", 'b', &settings.input_mean, "subtracted from each pixel; by default as the model says, or 127.5"},
      {"input_std", 's', &settings.input_std, "what each pixel is then divided by; the same default"},
      {"num_results", 'r', IntFlag{&settings.num_results, 1}, "number of results to print"},
      {"threads", 't', IntFlag{&settings.session.num_threads, 1, kMostThreads}, "number of threads"},
      {"count", 'c', IntFlag{&settings.count, 1}, "number of runs whose average time is printed"},
      {"warmup_runs", 'w', IntFlag{&settings.warmup_runs, 0}, "number of runs before the measured ones"},
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
}  // namespace litebnn::programs

int main(int argc, char** argv) { return litebnn::programs::RunProgram(litebnn::programs::Main, argc, argv); }
