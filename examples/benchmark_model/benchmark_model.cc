// Measures the time of a model with random inputs, and prints statistics as text and as JSON. The program takes the
// flags of TensorFlow's program of the same name, and the additional flags --lcompute and --output.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <system_error>
#include <vector>

#include "common/error.h"
#include "common/flags.h"
#include "common/json.h"
#include "common/session.h"
#include "common/statistics.h"
#include "litebnn/litebnn.h"

namespace litebnn::examples {
namespace {

struct Settings {
  SessionOptions session;
  int num_runs = 50;
  int warmup_runs = 5;
  std::string output;
};

struct Measurement {
  double load_ms;
  std::vector<double> run_ms;
  std::vector<OpTime> ops;
};

// Fills an input tensor: floats get random values from -1 to 1, one-byte integers any random value. Other types stay
// zero, because their valid range depends on the model.
void FillInput(Session& session, size_t index, std::mt19937& random) {
  const Tensor input = session.inputs()[index];
  if (input.type == ElementType::kString) {
    throw Error(Format("the input %s is %s: text cannot be made up", input.name.c_str(), Describe(input).c_str()));
  }
  std::vector<char> bytes(session.InputSize(index));
  if (input.type == ElementType::kFloat32) {
    std::uniform_real_distribution<float> values(-1, 1);
    for (size_t at = 0; at + sizeof(float) <= bytes.size(); at += sizeof(float)) {
      const float value = values(random);
      std::memcpy(&bytes[at], &value, sizeof value);
    }
  } else if (input.type == ElementType::kInt8 || input.type == ElementType::kUInt8) {
    std::uniform_int_distribution<int> values(-128, 127);
    for (char& byte : bytes) byte = static_cast<char>(values(random));
  }
  session.FillInput(index, bytes.data());
}

Measurement Measure(const Settings& settings) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point load = Clock::now();
  const std::unique_ptr<Session> session = LoadSession(settings.session);
  Measurement measurement = {std::chrono::duration<double, std::milli>(Clock::now() - load).count(), {}, {}};

  std::mt19937 random;
  for (size_t i = 0; i < session->inputs().size(); ++i) FillInput(*session, i, random);
  for (int i = 0; i < settings.warmup_runs; ++i) session->Invoke();
  session->ResetOpTimes();
  for (int i = 0; i < settings.num_runs; ++i) measurement.run_ms.push_back(session->Invoke());
  measurement.ops = session->op_times();
  return measurement;
}

// Returns the peak memory of this process in bytes; 0 if the system does not report it. The function getrusage is not
// used, because it includes the memory of the parent process.
double PeakMemory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    double kibibytes = 0;
    if (std::sscanf(line.c_str(), "VmHWM: %lf kB", &kibibytes) == 1) return kibibytes * 1024;
  }
  return 0;
}

Json ToJson(const Settings& settings, const Measurement& measurement, double peak_memory) {
  const Statistics statistics = Summarize(measurement.run_ms);
  const auto percentile = [&measurement](double percent) { return Percentile(measurement.run_ms, percent); };
  std::vector<Json> ops;
  for (const OpTime& time : measurement.ops) {
    const double calls = static_cast<double>(time.calls);
    ops.push_back(Json::Object({{"node", time.node},
                                {"op", time.op},
                                {"output", time.output},
                                {"calls", calls},
                                {"mean_ms", calls > 0 ? time.milliseconds / calls : 0}}));
  }
  return Json::Object({
      {"graph", settings.session.model},
      {"tflite_version", RuntimeName()},
      {"litebnn_version", litebnn_version()},
      {"num_threads", settings.session.num_threads},
      {"lcompute", settings.session.lcompute},
      {"use_xnnpack", settings.session.xnnpack},
      {"external_delegate_path", settings.session.external_delegate},
      {"warmup_runs", settings.warmup_runs},
      {"num_runs", settings.num_runs},
      {"load_ms", measurement.load_ms},
      {"latency_ms", Json::Object({{"median", percentile(50)},
                                   {"mean", statistics.mean},
                                   {"std", statistics.deviation},
                                   {"min", statistics.minimum},
                                   {"max", statistics.maximum},
                                   {"p5", percentile(5)},
                                   {"p90", percentile(90)},
                                   {"p95", percentile(95)},
                                   {"p99", percentile(99)}})},
      {"run_ms", Json::Array({measurement.run_ms.begin(), measurement.run_ms.end()})},
      {"peak_memory_bytes", peak_memory},
      {"ops", Json::Array(ops)},
  });
}

// True if the output is first written to another file, which is then renamed. Only regular files are written in this
// way. Links, pipes and devices are opened and written in place.
bool IsReplaced(const std::string& path) {
  std::error_code missing;
  const std::filesystem::file_type type = std::filesystem::symlink_status(path, missing).type();
  return type == std::filesystem::file_type::not_found || type == std::filesystem::file_type::regular;
}

[[noreturn]] void RefuseOutput(const std::string& path) {
  throw Error(Format("cannot write --output=%s", path.c_str()));
}

// Throws an error if the output path cannot be written. It is called before the measurement, so that the user does not
// wait minutes for the error.
void CheckWritable(const std::string& path) {
  const std::filesystem::path destination(path);
  std::error_code missing;
  if (!destination.has_filename() || std::filesystem::is_directory(destination, missing)) RefuseOutput(path);
  if (!IsReplaced(path)) {
    // The output path may be a link whose target does not exist yet.
    const bool exists = std::filesystem::exists(destination, missing);
    const bool is_writable = exists ? access(path.c_str(), W_OK) == 0 : std::ofstream(path).is_open();
    if (!is_writable) RefuseOutput(path);
    return;
  }
  const std::string folder = destination.has_parent_path() ? destination.parent_path().string() : ".";
  if (access(folder.c_str(), W_OK) != 0) RefuseOutput(path);
}

// Writes a file completely or not at all.
void WriteFile(const std::string& path, const std::string& content) {
  const bool replace = IsReplaced(path);
  const std::string destination = replace ? path + ".new" : path;
  std::ofstream file(destination, std::ios::binary);
  file << content;
  file.close();
  std::error_code problem;
  if (file && replace) std::filesystem::rename(destination, path, problem);
  if (!file || problem) {
    if (replace) std::remove(destination.c_str());
    RefuseOutput(path);
  }
}

void Print(const Settings& settings, const Measurement& measurement, double peak_memory) {
  const Statistics statistics = Summarize(measurement.run_ms);
  const auto percentile = [&measurement](double percent) { return Percentile(measurement.run_ms, percent); };
  std::printf("%s: %d runs, %d threads, %s, litebnn %s\n", settings.session.model.c_str(), settings.num_runs,
              settings.session.num_threads, RuntimeName().c_str(), litebnn_version());
  std::printf("latency: median %.3f ms, mean %.3f, std %.3f, min %.3f, p90 %.3f, p99 %.3f, max %.3f\n", percentile(50),
              statistics.mean, statistics.deviation, statistics.minimum, percentile(90), percentile(99),
              statistics.maximum);
  std::printf("load: %.3f ms; peak memory: %.1f MiB\n", measurement.load_ms, peak_memory / (1 << 20));
  if (settings.session.profiling) std::printf("%s", FormatOpTimes(measurement.ops).c_str());
}

void Main(int argc, char** argv) {
  Settings settings;
  const std::vector<Flag> flags = {
      {"graph", 0, &settings.session.model, "the model"},
      {"num_threads", 0, IntFlag{&settings.session.num_threads, 1, kMostThreads}, "number of threads"},
      {"num_runs", 0, IntFlag{&settings.num_runs, 1}, "number of measured runs"},
      {"warmup_runs", 0, IntFlag{&settings.warmup_runs, 0}, "number of runs before the measured ones"},
      {"lcompute", 0, &settings.session.lcompute, "run the Lce ops, by litebnn"},
      {"use_xnnpack", 0, &settings.session.xnnpack, "run float and quantized ops in XNNPACK"},
      {"external_delegate_path", 0, &settings.session.external_delegate, "delegate library to load"},
      {"enable_op_profiling", 0, &settings.session.profiling, "print the time of each op"},
      {"output", 0, &settings.output, "file to write the results to, as JSON"},
  };
  if (!ParseFlags(argc, argv, flags)) return;
  if (settings.session.model.empty()) throw Error("name the model with --graph=FILE");
  if (!settings.output.empty()) CheckWritable(settings.output);
  const Measurement measurement = Measure(settings);
  const double peak_memory = PeakMemory();
  Print(settings, measurement, peak_memory);
  if (!settings.output.empty()) WriteFile(settings.output, ToJson(settings, measurement, peak_memory).text() + "\n");
}

}  // namespace
}  // namespace litebnn::examples

int main(int argc, char** argv) { return litebnn::examples::RunProgram(litebnn::examples::Main, argc, argv); }
