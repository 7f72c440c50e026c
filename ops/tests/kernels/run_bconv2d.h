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
std::vector<uint8_t> RunBconv(const Isa& isa, const BconvCase& c, const BconvData& data, int threads,
                              bool in_place = false);

void ExpectAsReference(const Isa& isa, const BconvCase& c, int threads);

inline constexpr Bconv2dOutputType kOutputTypes[] = {Bconv2dOutputType::kFloat32, Bconv2dOutputType::kInt8,
                                                     Bconv2dOutputType::kBitpacked};
inline constexpr Activation kActivations[] = {Activation::kNone, Activation::kRelu, Activation::kReluN1To1,
                                              Activation::kRelu6};

}  // namespace litebnn
