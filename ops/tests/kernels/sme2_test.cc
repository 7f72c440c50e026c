// Tests of the ABI contract of the SME2 kernels: the CPU's modes, and the ZA storage that a caller left to be saved
// lazily.
#include <gtest/gtest.h>

#if defined(__aarch64__)

#include <cstdint>
#include <cstdio>
#include <vector>

#include "tests/kernels/run_bconv2d.h"

namespace litebnn {
namespace {

// The SME2 instructions are encoded as words, because not every assembler knows them.
int64_t VectorBytes() {
  register int64_t bytes __asm__("x0");
  __asm__ volatile(".inst 0x04bf5820" : "=r"(bytes));  // rdsvl x0, #1
  return bytes;
}

uint64_t Modes() {
  uint64_t modes = 0;
  __asm__ volatile("mrs %0, s3_3_c4_c2_2" : "=r"(modes));
  return modes;
}

// The block of memory to which the register TPIDR2_EL0 points. According to the AAPCS64, the block says where to save
// the ZA storage of a caller.
struct LazySave {
  void* buffer;
  uint16_t rows;
  uint16_t reserved[3] = {};
};

const void* SaveOfCaller() {
  const void* save = nullptr;
  __asm__ volatile("mrs %0, s3_3_c13_c0_5" : "=r"(save));
  return save;
}

// Enables the ZA storage, loads it, and marks it as to be saved to `save` by the next function that needs ZA.
void LeaveStorage(const std::vector<uint8_t>& storage, const LazySave* save) {
  const int64_t rows = VectorBytes();
  register const uint8_t* from __asm__("x0") = storage.data();
  register int64_t row __asm__("x12") = 0;
  __asm__ volatile(
      ".inst 0xd503457f\n"  // smstart za
      "1:\n"
      ".inst 0xe1000000\n"  // ldr za[w12, 0], [x0]
      "add x0, x0, %[rows]\n"
      "add x12, x12, #1\n"
      "cmp x12, %[rows]\n"
      "b.lt 1b\n"
      "msr s3_3_c13_c0_5, %[save]\n"
      : "+r"(from), "+r"(row)
      : [rows] "r"(rows), [save] "r"(save)
      : "cc", "memory");
}

TEST(Sme2, SavesStorageThatItsCallerHasLeft) {
  const Isa* const isa = FindIsa("sme2");
  if (isa == nullptr) GTEST_SKIP() << "this CPU has no SME2";
  const auto bytes = static_cast<size_t>(VectorBytes());
  std::printf("vectors of %zu bits\n", bytes * 8);
  std::vector<uint8_t> storage(bytes * bytes), saved(bytes * bytes);
  for (size_t i = 0; i < storage.size(); ++i) storage[i] = static_cast<uint8_t>(i % 251);
  const LazySave save = {saved.data(), static_cast<uint16_t>(bytes)};
  LeaveStorage(storage, &save);
  ExpectAsReference(*isa, BconvCase(), 1);
  EXPECT_EQ(SaveOfCaller(), nullptr);
  EXPECT_EQ(Modes(), 0u);
  EXPECT_TRUE(saved == storage);
}

}  // namespace
}  // namespace litebnn

#endif  // __aarch64__
