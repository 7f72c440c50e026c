#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace litebnn {

constexpr size_t kAlignment = 64;

constexpr size_t AlignUp(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Zeroed memory, aligned for any vector load. Pages of a large block that are never written take neither time nor
// memory, because the system maps them to zeros on demand.
template <typename T>
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  AlignedBuffer(const AlignedBuffer&) = delete;
  AlignedBuffer& operator=(const AlignedBuffer&) = delete;
  ~AlignedBuffer() { std::free(block_); }

  // Frees the previous memory and allocates `count` elements. Returns false if memory ran out.
  bool Allocate(size_t count) {
    std::free(block_);
    const size_t bytes = AlignUp(count * sizeof(T));
    // calloc does not align to kAlignment, so the block has room to round its address up.
    block_ = bytes == 0 ? nullptr : std::calloc(bytes + kAlignment, 1);
    bytes_ = block_ == nullptr ? 0 : bytes;
    data_ = block_ == nullptr ? nullptr : reinterpret_cast<T*>(AlignUp(reinterpret_cast<uintptr_t>(block_)));
    return bytes_ == bytes;
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  void* block_ = nullptr;
  T* data_ = nullptr;  // aligned address within the block
  size_t bytes_ = 0;
};

}  // namespace litebnn
