// Runs a convolution in guarded memory, and compares it with the reference.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "kernels/platform/thread_pool.h"
#include "tests/kernels/bconv2d_reference.h"

namespace litebnn {

// A memory block that is followed by an inaccessible page, so that an access past its end crashes.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(size_t bytes) : bytes_(bytes) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    mapped_bytes_ = (bytes + page - 1) / page * page + page;
    mapped_ = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(mapped_, MAP_FAILED);
    guard_ = static_cast<uint8_t*>(mapped_) + mapped_bytes_ - page;
    EXPECT_EQ(mprotect(guard_, page, PROT_NONE), 0);
    // The memory is filled with 0xA5, so that a kernel that relies on zeros in fresh memory gives a wrong result.
    if (bytes > 0) std::memset(data(), 0xA5, bytes);
  }
  // The address of the values; null if `values` is empty.
  template <typename T>
  explicit GuardedBuffer(const std::vector<T>& values) : GuardedBuffer(values.size() * sizeof(T)) {
    if (!values.empty()) std::memcpy(data(), values.data(), bytes_);
  }
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;
  ~GuardedBuffer() { munmap(mapped_, mapped_bytes_); }

  uint8_t* data() { return bytes_ == 0 ? nullptr : guard_ - bytes_; }
  template <typename T>
  T* As() {
    return reinterpret_cast<T*>(data());
  }

 private:
  size_t bytes_, mapped_bytes_ = 0;
  void* mapped_ = nullptr;
  uint8_t* guard_ = nullptr;
};

// Runs a convolution and returns the bytes of its output. If `in_place` is true, the output overwrites the addend.
// GateImages runs afterwards if the convolution does not support a gate.
inline std::vector<uint8_t> RunBconv(const Isa& isa, const BconvCase& c, const BconvData& data, int threads,
                                     bool in_place = false) {
  const auto pool = ThreadPool::Create(threads);
  const auto conv = Bconv2d::Create(isa, data.spec, data.filter.data());
  EXPECT_NE(pool, nullptr);
  EXPECT_NE(conv, nullptr);
  EXPECT_TRUE(conv->Resize(data.geometry));
  GuardedBuffer input(data.input), addend(data.addend), workspace(conv->WorkspaceBytes(threads));
  GuardedBuffer gate(data.gate), slope(data.slope);
  const size_t output_bytes = OutputBytes(c, data.geometry);
  GuardedBuffer output(output_bytes);
  if (in_place) std::memcpy(output.data(), addend.data(), output_bytes);
  const float* const added = in_place ? output.As<float>() : addend.As<float>();
  const int64_t gate_stride = c.gates > 1 ? c.channels_out : 0;
  if (c.gates == 0 || conv->gates()) {
    conv->Run(*pool, input.As<uint32_t>(), {gate.As<float>(), gate_stride, slope.As<float>(), added, c.rectify_sum},
              output.data(), workspace.data());
  } else {
    GuardedBuffer convolved(output_bytes);
    conv->Run(*pool, input.As<uint32_t>(), {}, convolved.data(), workspace.data());
    const Bconv2dGeometry& g = data.geometry;
    const int64_t row = int64_t{g.output_width} * c.channels_out;
    GateImages(isa, *pool,
               {g.batch,
                g.output_height,
                g.output_width,
                c.channels_out,
                {convolved.As<float>(), g.output_height * row, row, c.channels_out},
                {gate.As<float>(), gate_stride, 0, 0},
                false,
                slope.As<float>(),
                added,
                c.rectify_sum,
                output.As<float>()});
  }
  return std::vector<uint8_t>(output.data(), output.data() + output_bytes);
}

inline void ExpectAsReference(const Isa& isa, const BconvCase& c, int threads) {
  BconvData data;
  if (!MakeBconvData(c, &data)) return;
  const std::vector<uint8_t> expected = ReferenceBconv(c, data);
  EXPECT_TRUE(RunBconv(isa, c, data, threads) == expected) << Describe(c) << ", threads " << threads;
  if (data.addend.empty()) return;
  EXPECT_TRUE(RunBconv(isa, c, data, threads, true) == expected) << Describe(c) << ", in place";
}

inline constexpr Bconv2dOutputType kOutputTypes[] = {Bconv2dOutputType::kFloat32, Bconv2dOutputType::kInt8,
                                                     Bconv2dOutputType::kBitpacked};
inline constexpr Activation kActivations[] = {Activation::kNone, Activation::kRelu, Activation::kReluN1To1,
                                              Activation::kRelu6};

}  // namespace litebnn
