// Packs the signs of rows of values, and unpacks packed signs. Threads share the rows.
#include "kernels/isa/isa.h"
#include "kernels/platform/thread_pool.h"

namespace litebnn {
namespace {

// Estimated cycles to load a value from the L2 cache. The packing itself takes no extra time, because it overlaps with
// the load.
constexpr double kCyclesPerValue = 0.2;

template <typename Body>
void ForRows(ThreadPool& pool, int64_t rows, int32_t channels, Body body) {
  // Each chunk has a multiple of 32 rows. Therefore each thread's chunk begins at a cache line, if the whole buffer
  // does.
  const LoopSize size = {rows, kBitsPerWord, kCyclesPerValue * channels};
  ParallelFor(pool, size, [&body](int, int64_t begin, int64_t end) { body(begin, end - begin); });
}

}  // namespace

void PackFloat32Signs(const Isa& isa, ThreadPool& pool, const float* input, int64_t rows, int32_t channels,
                      uint32_t* output) {
  ForRows(pool, rows, channels, [&](int64_t begin, int64_t count) {
    isa.pack_float32_signs(input + begin * channels, count, channels, output + begin * PackedWords(channels));
  });
}

void PackInt8Signs(const Isa& isa, ThreadPool& pool, const int8_t* input, int64_t rows, int32_t channels,
                   int32_t zero_point, uint32_t* output) {
  ForRows(pool, rows, channels, [&](int64_t begin, int64_t count) {
    isa.pack_int8_signs(input + begin * channels, count, channels, zero_point, output + begin * PackedWords(channels));
  });
}

void PackInt8Comparisons(const Isa& isa, ThreadPool& pool, const int8_t* input, int64_t rows, int32_t channels,
                         const int8_t* thresholds, const uint32_t* inverted, uint32_t* output, int64_t output_words) {
  ForRows(pool, rows, channels, [&](int64_t begin, int64_t count) {
    isa.pack_int8_comparisons(input + begin * channels, count, channels, thresholds, inverted,
                              output + begin * output_words, output_words);
  });
}

void PackBoolSigns(const Isa& isa, ThreadPool& pool, const bool* input, int64_t rows, int32_t channels,
                   uint32_t* output) {
  static_assert(sizeof(bool) == 1, "a bool is read as a byte");
  // The byte of `false` is 0 and that of `true` is 1. With the limit 1, PackInt8Signs packs `false` as -1 and `true`
  // as +1.
  PackInt8Signs(isa, pool, reinterpret_cast<const int8_t*>(input), rows, channels, 1, output);
}

void PackAffineSigns(const Isa& isa, ThreadPool& pool, const float* input, const float* multiplier, const float* addend,
                     int64_t rows, int32_t channels, uint32_t* output, int64_t output_words) {
  ForRows(pool, rows, channels, [&](int64_t begin, int64_t count) {
    isa.pack_affine_signs(input + begin * channels, multiplier, addend, count, channels, output + begin * output_words,
                          output_words);
  });
}

template <typename T>
void UnpackSigns(ThreadPool& pool, const uint32_t* input, int64_t rows, int32_t channels, T plus_one, T minus_one,
                 T* output) {
  // The array maps a bit to its value. For a conditional expression, compilers would emit a branch, and the CPU cannot
  // predict branches on random bits.
  const T value_of[] = {plus_one, minus_one};
  ForRows(pool, rows, channels, [=](int64_t begin, int64_t count) {
    const uint32_t* words = input + begin * PackedWords(channels);
    T* values = output + begin * channels;
    for (int64_t row = 0; row < count; ++row, values += channels, words += PackedWords(channels)) {
      for (int32_t channel = 0; channel < channels; ++channel) {
        values[channel] = value_of[words[channel / kBitsPerWord] >> (channel % kBitsPerWord) & 1u];
      }
    }
  });
}

template void UnpackSigns(ThreadPool&, const uint32_t*, int64_t, int32_t, float, float, float*);
template void UnpackSigns(ThreadPool&, const uint32_t*, int64_t, int32_t, int8_t, int8_t, int8_t*);

}  // namespace litebnn
