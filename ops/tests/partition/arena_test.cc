#include "tflite/partition/arena.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace litebnn {
namespace {

void ExpectNoOverlap(const std::vector<ArenaBuffer>& buffers, size_t total) {
  for (size_t i = 0; i < buffers.size(); ++i) {
    const ArenaBuffer& a = buffers[i];
    EXPECT_EQ(a.offset % kAlignment, 0u);
    EXPECT_LE(a.offset + a.bytes, total);
    for (size_t j = 0; j < i; ++j) {
      const ArenaBuffer& b = buffers[j];
      const bool together = a.first <= b.last && b.first <= a.last;
      const bool apart = a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset;
      EXPECT_TRUE(!together || apart || a.bytes == 0 || b.bytes == 0) << i << " and " << j;
    }
  }
}

TEST(Arena, AChainNeedsTwoBuffersOnly) {
  std::vector<ArenaBuffer> buffers;
  for (int i = 0; i < 10; ++i) buffers.push_back({1024, i, i + 1, 0});
  size_t total = 0;
  ASSERT_TRUE(PlanArena(&buffers, &total));
  EXPECT_EQ(total, 2048u);
  ExpectNoOverlap(buffers, total);
}

TEST(Arena, TheLargestArePlacedFirst) {
  // If the buffers were placed in the given order, the last buffer would lie after both others.
  std::vector<ArenaBuffer> buffers = {{64, 0, 1, 0}, {64, 1, 2, 0}, {128, 2, 2, 0}};
  size_t total = 0;
  ASSERT_TRUE(PlanArena(&buffers, &total));
  EXPECT_EQ(total, 192u);
  ExpectNoOverlap(buffers, total);
}

TEST(Arena, FillsGaps) {
  // The second buffer is no longer in use when the last one begins. Therefore the last buffer fits between the first
  // and the third.
  std::vector<ArenaBuffer> buffers = {{640, 0, 3, 0}, {320, 0, 1, 0}, {192, 1, 3, 0}, {128, 2, 3, 0}};
  size_t total = 0;
  ASSERT_TRUE(PlanArena(&buffers, &total));
  EXPECT_EQ(buffers[3].offset, 640u);
  EXPECT_EQ(total, 640u + 320u + 192u);
  ExpectNoOverlap(buffers, total);
}

TEST(Arena, NothingNeedsNothing) {
  std::vector<ArenaBuffer> buffers;
  size_t total = 1;
  ASSERT_TRUE(PlanArena(&buffers, &total));
  EXPECT_EQ(total, 0u);
}

TEST(Arena, BuffersOfNothingAddNothing) {
  std::vector<ArenaBuffer> buffers = {{100, 0, 1, 0}, {0, 0, 1, 0}};
  size_t total = 0;
  ASSERT_TRUE(PlanArena(&buffers, &total));
  EXPECT_EQ(total, 100u);
  EXPECT_EQ(buffers[1].offset, 0u);
}

TEST(Arena, RandomLifetimesNeverOverlap) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<ArenaBuffer> buffers(random() % 40);
    for (ArenaBuffer& buffer : buffers) {
      const int first = static_cast<int>(random() % 20);
      buffer = {random() % 5 == 0 ? 0 : random() % 5000, first, first + static_cast<int>(random() % 6), 0};
    }
    size_t total = 0;
    ASSERT_TRUE(PlanArena(&buffers, &total));
    ExpectNoOverlap(buffers, total);
  }
}

TEST(Arena, GrowsAndNeverShrinks) {
  Arena arena;
  EXPECT_EQ(arena.capacity(), 0u);
  EXPECT_TRUE(arena.Reserve(0));
  EXPECT_TRUE(arena.Reserve(100));
  ASSERT_NE(arena.data(), nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(arena.data()) % kAlignment, 0u);
  const std::byte* const data = arena.data();
  EXPECT_TRUE(arena.Reserve(10));
  EXPECT_EQ(arena.data(), data);
  EXPECT_EQ(arena.capacity(), AlignUp(100));
  EXPECT_TRUE(arena.Reserve(arena.capacity()));
  EXPECT_EQ(arena.data(), data);
  EXPECT_TRUE(arena.Reserve(5000));
  EXPECT_EQ(arena.capacity(), AlignUp(5000));
}

TEST(Arena, RefusesWhatDoesNotFit) {
  const size_t half = std::numeric_limits<size_t>::max() / 2;
  std::vector<ArenaBuffer> buffers = {{half, 0, 1, 0}, {half, 0, 1, 0}};
  size_t total = 0;
  EXPECT_FALSE(PlanArena(&buffers, &total));
  // A single buffer of `half` bytes, the largest size that an arena may have, fits. A buffer with one byte more does
  // not.
  buffers.pop_back();
  EXPECT_TRUE(PlanArena(&buffers, &total));
  EXPECT_EQ(total, half);
  ++buffers[0].bytes;
  EXPECT_FALSE(PlanArena(&buffers, &total));
}

}  // namespace
}  // namespace litebnn
