#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace litebnn {

constexpr size_t kAlignment = 64;

constexpr size_t AlignUp(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Zeroed memory aligned for any vector load.
template <typename T>
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  AlignedBuffer(const AlignedBuffer&) = delete;
  AlignedBuffer& operator=(const AlignedBuffer&) = delete;
  ~AlignedBuffer() { std::free(data_); }

  // What was held is gone. False where memory ran out.
  bool Allocate(size_t count) {
    std::free(data_);
    bytes_ = AlignUp(count * sizeof(T));
    data_ = static_cast<T*>(bytes_ == 0 ? nullptr : std::aligned_alloc(kAlignment, bytes_));
    if (data_ == nullptr) {
      const bool nothing_wanted = bytes_ == 0;
      bytes_ = 0;
      return nothing_wanted;
    }
    std::memset(data_, 0, bytes_);
    return true;
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  T* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace litebnn
