// The file defines operator new and operator delete for the shared library on macOS. Without these definitions, zig's
// linker would link the operators of the static C++ library. The linker would also export these operators, because it
// supports no list of exports. With the compiler flag -fvisibility-global-new-delete, the definitions below are hidden.
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

void* AllocateOnce(size_t size, size_t alignment) noexcept {
  const size_t bytes = size == 0 ? 1 : size;
  if (alignment <= alignof(std::max_align_t)) return std::malloc(bytes);
  void* block = nullptr;
  return posix_memalign(&block, alignment, bytes) == 0 ? block : nullptr;
}

// The C++ standard requires this loop: after a failure, the new-handler may free memory for another attempt, or throw.
void* Allocate(size_t size, size_t alignment) {
  for (;;) {
    if (void* block = AllocateOnce(size, alignment)) return block;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

void* AllocateOrNull(size_t size, size_t alignment) noexcept {
  try {
    return Allocate(size, alignment);
  } catch (...) {
    return nullptr;
  }
}

constexpr size_t kDefault = alignof(std::max_align_t);
constexpr size_t AsSize(std::align_val_t alignment) { return static_cast<size_t>(alignment); }

}  // namespace

void* operator new(size_t size) { return Allocate(size, kDefault); }
void* operator new[](size_t size) { return Allocate(size, kDefault); }
void* operator new(size_t size, const std::nothrow_t&) noexcept { return AllocateOrNull(size, kDefault); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return AllocateOrNull(size, kDefault); }
void* operator new(size_t size, std::align_val_t alignment) { return Allocate(size, AsSize(alignment)); }
void* operator new[](size_t size, std::align_val_t alignment) { return Allocate(size, AsSize(alignment)); }
void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return AllocateOrNull(size, AsSize(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return AllocateOrNull(size, AsSize(alignment));
}

void operator delete(void* block) noexcept { std::free(block); }
void operator delete[](void* block) noexcept { std::free(block); }
void operator delete(void* block, size_t) noexcept { std::free(block); }
void operator delete[](void* block, size_t) noexcept { std::free(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { std::free(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept { std::free(block); }
void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
void operator delete[](void* block, std::align_val_t) noexcept { std::free(block); }
void operator delete(void* block, size_t, std::align_val_t) noexcept { std::free(block); }
void operator delete[](void* block, size_t, std::align_val_t) noexcept { std::free(block); }
void operator delete(void* block, std::align_val_t, const std::nothrow_t&) noexcept { std::free(block); }
void operator delete[](void* block, std::align_val_t, const std::nothrow_t&) noexcept { std::free(block); }
