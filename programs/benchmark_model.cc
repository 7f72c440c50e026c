// Measures the time of a model with random inputs, and prints statistics as text and as JSON. The program takes the
// flags of TensorFlow's program of the same name, and the additional flags --lcompute and --output.
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "common/error.h"
#include "common/files.h"
#include "common/flags.h"
#include "common/json.h"
#include "common/session.h"
#include "common/times.h"
#include "litebnn/litebnn.h"

namespace litebnn::programs {
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

// Fills an input tensor with random floats or one-byte integers. Other types are filled with zeros, because their valid
// range depends on the model.
void FillInput(Session& session, size_t index, uint32_t& random) {
  const Tensor input = session.inputs()[index];
  if (input.type == ElementType::kString) {
    throw Error(Format("the input %s is %s: text cannot be made up", input.name.c_str(), Describe(input).c_str()));
  }
  const bool is_random =
      input.type == ElementType::kFloat32 || input.type == ElementType::kInt8 || input.type == ElementType::kUInt8;
  const size_t size = session.InputSize(index);
  session.FillInput(index, (is_random ? RandomInput(input.type, size, random) : std::vector<char>(size)).data());
}

Measurement Measure(const Settings& settings) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point load = Clock::now();
  const std::unique_ptr<Session> session = LoadSession(settings.session);
  Measurement measurement = {std::chrono::duration<double, std::milli>(Clock::now() - load).count(), {}, {}};

  uint32_t random = kRandomSeed;
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
  double kibibytes = 0;
  std::FILE* status = std::fopen("/proc/self/status", "r");
  if (status == nullptr) return 0;
  for (char line[256]; kibibytes == 0 && std::fgets(line, sizeof line, status) != nullptr;) {
    std::sscanf(line, "VmHWM: %lf kB", &kibibytes);
  }
  std::fclose(status);
  return kibibytes * 1024;
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
      {"lcompute", 0, &settings.session.lcompute, "run litebnn's custom ops"},
      {"use_xnnpack", 0, &settings.session.xnnpack, "run float and quantized ops in XNNPACK"},
      {"external_delegate_path", 0, &settings.session.external_delegate, "delegate library to load"},
      {"enable_op_profiling", 0, &settings.session.profiling, "print the time of each op"},
      {"output", 0, &settings.output, "file to write the results to, as JSON"},
  };
  if (!ParseFlags(argc, argv, flags)) return;
  if (settings.session.model.empty()) throw Error("name the model with --graph=FILE");
  const std::string& output = settings.output;
  const auto require = [&output](bool is_writable) {
    if (!is_writable) throw Error(Format("cannot write --output=%s", output.c_str()));
  };
  require(output.empty() || CanWrite(output));
  const Measurement measurement = Measure(settings);
  const double peak_memory = PeakMemory();
  Print(settings, measurement, peak_memory);
  require(output.empty() || WriteFile(output, ToJson(settings, measurement, peak_memory).text() + "\n"));
}

}  // namespace
}  // namespace litebnn::programs

int main(int argc, char** argv) { return litebnn::programs::RunProgram(litebnn::programs::Main, argc, argv); }
