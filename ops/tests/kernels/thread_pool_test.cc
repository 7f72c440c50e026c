#include "kernels/platform/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace litebnn {
namespace {

TEST(ThreadPool, EveryElementIsDoneOnceByContiguousParts) {
  for (int threads : {1, 2, 3, 7}) {
    const auto pool = ThreadPool::Create(threads);
    ASSERT_NE(pool, nullptr);
    EXPECT_EQ(pool->num_threads(), threads);
    // Many short loops, so that workers are met both spinning and asleep.
    for (int64_t count = 0; count < 300; ++count) {
      std::vector<int> done(static_cast<size_t>(count), 0);
      pool->ParallelFor(
          count, 4,
          [](void* context, int, int64_t begin, int64_t end) {
            EXPECT_EQ(begin % 4, 0);
            for (int64_t i = begin; i < end; ++i) ++(*static_cast<std::vector<int>*>(context))[static_cast<size_t>(i)];
          },
          &done);
      EXPECT_EQ(std::count(done.begin(), done.end(), 1), count);
    }
  }
}

TEST(ThreadPool, RefusesNoThreads) { EXPECT_EQ(ThreadPool::Create(0), nullptr); }

}  // namespace
}  // namespace litebnn
