// This program times the kernels on the layer shapes of real networks, on this CPU. Usage:
//   kernels_bench [--isa=NAME] [--against=NAME] [--threads=N] [--rounds=N] [--only=TEXT]
// For an emulator that counts instructions, the program runs exactly N iterations of one layer:
//   kernels_bench --only=NAME --iterations=N
// The option --layer times one layer of any shape instead of the networks' layers. Its value has eight numbers: image
// width, input channels, output channels, filter width, stride, dilation, groups, and padding. The padding is 1 if the
// border of the image is filled with zeros, and 0 if with ones:
//   kernels_bench --layer=56,64,64,3,1,1,1,0 [...]
// The option --output chooses what the layers write: float (the default), float_sum, int8 or int8_sum. The two sums add
// an earlier layer's output in the epilogue, as residual networks do:
//   kernels_bench --only="bconv 3x3" --output=int8_sum
//
// The program prints one line per layer: median and best times, and billions of binary multiply-adds per second. The
// program also prints two lower bounds as shares of the layer's time. The first is the time of the ISA's inner loop on
// data in the L1 cache. The second adds conversions and stores of the layer's outputs. The loops for the bounds and the
// ISA of --against take turns with the layer, so all run at the same CPU clock. The last line has speeds that bound
// whole networks.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "inner_loops.h"
#include "kernels/kernels.h"
#include "kernels/platform/aligned_buffer.h"
#include "kernels/platform/thread_pool.h"

namespace litebnn {
namespace {

struct Options {
  const char* isa = nullptr;
  const char* against = nullptr;
  int threads = 1;
  int rounds = 200;
  int64_t iterations = 0;
  std::string only;
  std::string layer;
  std::string output = "float";
};

// True if the option --output may have the value `name`.
bool IsOutput(const std::string& name) {
  return name == "float" || name == "float_sum" || name == "int8" || name == "int8_sum";
}

struct Layer {
  std::string name;
  int32_t filter, size, channels_in, channels_out;
  int32_t stride = 1, dilation = 1, groups = 1, zeros = 0;
};

// Layers with the shapes of QuickNet's binary convolutions, also with filters of other sizes.
std::vector<Layer> Layers() {
  std::vector<Layer> layers;
  for (int32_t filter : {3, 1, 5}) {
    for (int32_t size : {56, 28, 14, 7}) {
      const int32_t channels = 64 * 56 / size;
      char name[64];
      std::snprintf(name, sizeof(name), "bconv %dx%d %dx%dx%d", filter, filter, size, size, channels);
      layers.push_back({name, filter, size, channels, channels});
    }
  }
  return layers;
}

// Parses the eight numbers of --layer. Returns false if they do not describe a layer.
bool ParseLayer(const std::string& text, Layer* layer) {
  layer->name = "bconv " + text;
  int end = 0;
  const int found =
      std::sscanf(text.c_str(), "%d,%d,%d,%d,%d,%d,%d,%d%n", &layer->size, &layer->channels_in, &layer->channels_out,
                  &layer->filter, &layer->stride, &layer->dilation, &layer->groups, &layer->zeros, &end);
  const auto sound = [](int32_t number) { return number > 0 && number <= 1 << 14; };
  return found == 8 && text[static_cast<size_t>(end)] == '\0' && sound(layer->size) && sound(layer->channels_in) &&
         sound(layer->channels_out) && sound(layer->filter) && sound(layer->stride) && sound(layer->dilation) &&
         sound(layer->groups) && layer->channels_out % layer->groups == 0 &&
         (layer->groups == 1 || layer->channels_in % (layer->groups * kBitsPerWord) == 0);
}

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// The measured seconds of each single call of a layer. A single call is so short that other programs seldom interrupt
// it.
struct Times {
  std::vector<double> seconds;

  template <typename Body>
  void Add(Body body) {
    const double start = Now();
    body();
    seconds.push_back(Now() - start);
  }
  // Returns the median of the measured seconds; 0 if nothing was measured.
  double Median() {
    if (seconds.empty()) return 0;
    const auto middle = seconds.begin() + static_cast<ptrdiff_t>(seconds.size() / 2);
    std::nth_element(seconds.begin(), middle, seconds.end());
    return *middle;
  }
  double Best() const { return seconds.empty() ? 0 : *std::min_element(seconds.begin(), seconds.end()); }
};

struct BconvBench {
  BconvBench(const Isa& isa, ThreadPool& thread_pool, const Layer& layer, const std::string& output_name)
      : pool(thread_pool) {
    std::mt19937 random(1);
    const int32_t words = PackedWords(layer.channels_in), taps = layer.filter * layer.filter;
    const int32_t depth = layer.channels_in / layer.groups, output_size = (layer.size - 1) / layer.stride + 1;
    input.resize(static_cast<size_t>(layer.size * layer.size * words));
    std::vector<uint32_t> filter(static_cast<size_t>(layer.channels_out * taps * PackedWords(depth)));
    for (uint32_t& word : input) word = static_cast<uint32_t>(random());
    for (uint32_t& word : filter) word = static_cast<uint32_t>(random());
    std::vector<float> multiplier(static_cast<size_t>(layer.channels_out), 0.5f), bias(multiplier.size(), 1.5f);
    Bconv2dSpec spec = {};
    spec.channels_in = layer.channels_in;
    spec.output_pixels = int64_t{output_size} * output_size;
    spec.channels_out = layer.channels_out;
    spec.groups = layer.groups;
    spec.stride_height = spec.stride_width = layer.stride;
    spec.dilation_height_factor = spec.dilation_width_factor = layer.dilation;
    spec.zero_padding = layer.zeros != 0;
    spec.filter_height = spec.filter_width = layer.filter;
    spec.activation = Activation::kRelu;
    spec.post_activation_multiplier = multiplier.data();
    spec.post_activation_bias = bias.data();
    const bool is_int8 = output_name == "int8" || output_name == "int8_sum";
    if (is_int8) {
      spec.output_type = Bconv2dOutputType::kInt8;
      spec.output_scale = kScale;
      spec.output_zero_point = -100;
    }
    conv = Bconv2d::Create(isa, spec, filter.data());
    // In SAME padding, half of the padding, rounded down, comes before the input.
    const int32_t reach = (output_size - 1) * layer.stride + (layer.filter - 1) * layer.dilation + 1;
    const int32_t pad = reach > layer.size ? (reach - layer.size) / 2 : 0;
    outputs = static_cast<size_t>(output_size * output_size * layer.channels_out);
    if (conv == nullptr || !conv->Resize({1, layer.size, layer.size, output_size, output_size, pad, pad}) ||
        !workspace.Allocate(conv->WorkspaceBytes(pool.num_threads())) || !output.Allocate(outputs) ||
        !addend.Allocate(outputs)) {
      std::fputs("out of memory\n", stderr);
      std::exit(1);
    }
    macs = static_cast<double>(outputs) * taps * depth;
    if (output_name == "float_sum") epilogue.addend = addend.data();
    if (output_name == "int8_sum") {
      epilogue.int8_addend = reinterpret_cast<const int8_t*>(addend.data());
      Int8Sum sum;
      if (!conv->adds_int8() || !sum.Set({{kScale, -100}, {1.3f * kScale, 3}, {1.7f * kScale, 5}, -128, 127}) ||
          !sum.FindFloatSum(&epilogue.int8_sum)) {
        std::fprintf(stderr, "%s does not add to int8 outputs\n", IsaName(conv->isa()));
        std::exit(1);
      }
    }
  }

  void Run() { conv->Run(pool, input.data(), epilogue, output.data(), workspace.data()); }

  static constexpr float kScale = 0.4f;  // of int8 outputs

  ThreadPool& pool;
  std::vector<uint32_t> input;
  // The output is aligned like a runtime's tensors. With another alignment, every second store would cross a cache
  // line.
  AlignedBuffer<float> output, addend;
  Bconv2dEpilogue epilogue;
  std::unique_ptr<Bconv2d> conv;
  AlignedBuffer<uint8_t> workspace;
  size_t outputs = 0;
  double macs = 0;
};

// Measures two lower bounds of a layer's time: the inner loop alone, and the inner loop with the writing of outputs.
struct BoundTimes {
  explicit BoundTimes(const Loops& isa_loops) : loops(isa_loops) {}

  void Add(size_t outputs) {
    if (loops.inner == nullptr) return;
    constexpr int64_t kMacs = 100000000;
    inner.Add([&] { inner_macs = loops.inner(kMacs); });
    output.Add([&] { loops.output(static_cast<int64_t>(outputs)); });
  }
  void Print(double macs, double seconds, double inner_seconds, double output_seconds, int threads) const {
    if (loops.inner == nullptr) return;
    const double loop = inner_seconds * macs / static_cast<double>(inner_macs) / threads;
    std::printf(" %3.0f %% of loop %.0f, %3.0f %% with outputs", loop / seconds * 100, macs / loop * 1e-9,
                (loop + output_seconds / threads) / seconds * 100);
  }

  Loops loops;
  int64_t inner_macs = 0;
  Times inner, output;
};

void TimeBconv(const Isa& isa, const Isa* against, ThreadPool& pool, const Layer& layer, const Options& options) {
  BconvBench bench(isa, pool, layer, options.output);
  if (options.iterations > 0) {
    for (int64_t i = 0; i < options.iterations; ++i) bench.Run();
    std::printf("%s %.0f MACs\n", layer.name.c_str(), bench.macs);
    return;
  }
  std::unique_ptr<BconvBench> other(against == nullptr ? nullptr
                                                       : new BconvBench(*against, pool, layer, options.output));
  BoundTimes bounds(LoopsOf(IsaName(bench.conv->isa())));
  Times times, other_times;
  // For this number of seconds, layers run before the measurement begins, because further cores of a virtual machine
  // may wake up slowly.
  constexpr double kSecondsToWakeUp = 0.2;
  const double awake = Now() + (options.threads > 1 ? kSecondsToWakeUp : 0.0);
  while (Now() < awake) bench.Run();
  for (int round = 0; round < options.rounds; ++round) {
    bounds.Add(bench.outputs);
    // The first run is not timed: the caches still hold other data, and the pool's threads may sleep.
    bench.Run();
    times.Add([&] { bench.Run(); });
    if (other == nullptr) continue;
    other->Run();
    other_times.Add([&] { other->Run(); });
  }
  const auto print = [&](const char* kind, double seconds, double inner, double output, double other_seconds) {
    std::printf(" | %s %7.3f ms %7.1f GMAC/s", kind, seconds * 1e3, bench.macs / seconds * 1e-9);
    bounds.Print(bench.macs, seconds, inner, output, options.threads);
    if (other != nullptr) std::printf(", %s %.2f times", IsaName(*against), other_seconds / seconds);
  };
  std::printf("%-22s", layer.name.c_str());
  print("median", times.Median(), bounds.inner.Median(), bounds.output.Median(), other_times.Median());
  print("best", times.Best(), bounds.inner.Best(), bounds.output.Best(), other_times.Best());
  std::printf("\n");
}

// Times the packing of signs, and also only reading the same floats.
void TimePackSigns(const Isa& isa, ThreadPool& pool, const Options& options) {
  for (int64_t kilobytes : {256, 131072}) {
    const int64_t values = kilobytes * 256;
    AlignedBuffer<float> input;
    AlignedBuffer<uint32_t> output;
    if (!input.Allocate(static_cast<size_t>(values)) || !output.Allocate(static_cast<size_t>(values / 32))) return;
    for (int64_t i = 0; i < values; ++i) input.data()[i] = static_cast<float>(i % 5 - 2);
    const auto pack = [&] { PackFloat32Signs(isa, pool, input.data(), values / 64, 64, output.data()); };
    if (options.iterations > 0) {
      for (int64_t i = 0; i < options.iterations; ++i) pack();
      continue;
    }
    volatile uint64_t sink = 0;
    Times times, read_times;
    for (int round = 0; round < (kilobytes > 1024 ? 9 : options.rounds); ++round) {
      read_times.Add([&] { sink = sink + ReadAll(input.data(), values); });
      times.Add(pack);
    }
    const double bytes = static_cast<double>(values) * 4;
    std::printf(
        "pack signs float32 %6lld KB median %7.3f ms %5.1f GB/s %3.0f %% of reading | best %5.1f GB/s %3.0f %%\n",
        static_cast<long long>(kilobytes), times.Median() * 1e3, bytes / times.Median() * 1e-9,
        read_times.Median() / times.Median() * 100, bytes / times.Best() * 1e-9,
        read_times.Best() / times.Best() * 100);
  }
}

// Adds up one value of each cache line, because adding all values would take longer than loading them.
float ReadLines(const float* values, size_t count) {
  constexpr size_t kLineValues = kAlignment / sizeof(float);
  float sums[4] = {};
  for (size_t i = 0; i + 4 * kLineValues <= count; i += 4 * kLineValues) {
    for (size_t line = 0; line < 4; ++line) sums[line] += values[i + line * kLineValues];
  }
  return sums[0] + sums[1] + sums[2] + sums[3];
}

// Measures the speeds that bound whole networks. They are those of the ISA's loops, of copying a tensor of 56x56x64
// floats, and of reading 8 MiB. The L2 cache does not hold 8 MiB.
void TimeBounds(const Isa& isa, const Options& options) {
  constexpr int64_t kMacs = 100000000, kOutputs = 1 << 20;
  const Loops loops = LoopsOf(IsaName(isa));
  if (loops.inner == nullptr || options.iterations > 0) return;
  constexpr size_t kCopied = 56 * 56 * 64, kWeights = size_t{2} << 20;
  AlignedBuffer<float> from, to, weights;
  if (!from.Allocate(kCopied) || !to.Allocate(kCopied) || !weights.Allocate(kWeights)) return;
  std::fill_n(weights.data(), kWeights, 0.5f);
  Times inner, outputs, copies, reads;
  volatile float sink = 0;
  int64_t macs = 0;
  for (int round = 0; round < options.rounds; ++round) {
    inner.Add([&] { macs = loops.inner(kMacs); });
    outputs.Add([&] { loops.output(kOutputs); });
    from.data()[static_cast<size_t>(round) % kCopied] += 1;
    copies.Add([&] { std::memcpy(to.data(), from.data(), kCopied * sizeof(float)); });
    // This statement prevents the compiler from removing the call of memcpy, whose result is never read.
    __asm__ volatile("" : : "r"(to.data()) : "memory");
    reads.Add([&] { sink = sink + ReadLines(weights.data(), kWeights); });
  }
  const auto gigabytes = [](size_t floats) { return static_cast<double>(floats * sizeof(float)) * 1e-9; };
  std::printf("bounds, best: loop %.1f GMAC/s, outputs %.2f G/s, read and written %.1f GB/s, weights %.1f GB/s\n",
              static_cast<double>(macs) / inner.Best() * 1e-9, kOutputs / outputs.Best() * 1e-9,
              2 * gigabytes(kCopied) / copies.Best(), gigabytes(kWeights) / reads.Best());
}

bool Parse(int count, char** arguments, Options* options) {
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const char* value = equals == std::string::npos ? "" : arguments[i] + equals + 1;
    if (name == "--isa") {
      options->isa = value;
    } else if (name == "--against") {
      options->against = value;
    } else if (name == "--threads") {
      options->threads = std::atoi(value);
    } else if (name == "--rounds") {
      options->rounds = std::atoi(value);
    } else if (name == "--iterations") {
      options->iterations = std::atoll(value);
    } else if (name == "--only") {
      options->only = value;
    } else if (name == "--layer") {
      options->layer = value;
    } else if (name == "--output" && IsOutput(value)) {
      options->output = value;
    } else {
      std::fprintf(
          stderr,
          "kernels_bench: unknown option %s: known are --isa, --against, --threads, --rounds, --iterations, --only, "
          "--layer, and --output=float, float_sum, int8 or int8_sum\n",
          argument.c_str());
      return false;
    }
  }
  return true;
}

// Returns the ISA `name`. If this CPU has no such ISA, prints a message and returns null.
const Isa* Find(const char* name) {
  const Isa* const isa = FindIsa(name);
  if (isa == nullptr) {
    std::fprintf(stderr, "kernels_bench: no ISA named %s for this CPU: there are %s\n",
                 name == nullptr ? "by LITEBNN_ISA" : name, AvailableIsas());
  }
  return isa;
}

int Main(int count, char** arguments) {
  Options options;
  if (!Parse(count, arguments, &options)) return 1;
  const Isa* const isa = Find(options.isa);
  const Isa* const against = options.against == nullptr ? nullptr : Find(options.against);
  if (isa == nullptr || (options.against != nullptr && against == nullptr)) return 1;
  const auto pool = ThreadPool::Create(options.threads);
  if (pool == nullptr) {
    std::fprintf(stderr, "kernels_bench: cannot start %d threads\n", options.threads);
    return 1;
  }
  std::printf("ISA %s, threads %d\n", IsaName(*isa), options.threads);
  std::vector<Layer> layers = Layers();
  if (!options.layer.empty()) {
    layers.resize(1);
    if (!ParseLayer(options.layer, &layers[0])) {
      std::fprintf(stderr, "kernels_bench: --layer is %s: expected eight numbers of a layer\n", options.layer.c_str());
      return 1;
    }
  }
  for (const Layer& layer : layers) {
    if (layer.name.find(options.only) != std::string::npos) TimeBconv(*isa, against, *pool, layer, options);
  }
  if (std::string("pack signs").find(options.only) != std::string::npos) TimePackSigns(*isa, *pool, options);
  if (std::string("bounds").find(options.only) != std::string::npos) TimeBounds(*isa, options);
  return 0;
}

}  // namespace
}  // namespace litebnn

int main(int count, char** arguments) { return litebnn::Main(count, arguments); }
