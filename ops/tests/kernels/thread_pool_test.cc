#include "kernels/platform/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

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

// What a forked child leaves with; 0 where `body` returned true. A child that hangs is ended by a signal.
template <typename Body>
int StatusOfChild(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(body() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

TEST(ThreadPool, AForkedChildRunsAloneAndEnds) {
  auto pool = ThreadPool::Create(3);
  ASSERT_NE(pool, nullptr);
  std::vector<int> done(300, 0);
  const auto run = [&] {
    ParallelFor(*pool, 300, 4, [&](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++done[static_cast<size_t>(i)];
    });
  };
  // Its workers are met spinning at first, and asleep in the end.
  for (int round = 1; round <= 3; ++round) {
    run();
    EXPECT_EQ(std::count(done.begin(), done.end(), round), 300);
    EXPECT_EQ(StatusOfChild([&] {
                run();
                run();
                const bool is_done = std::count(done.begin(), done.end(), round + 2) == 300;
                pool.reset();
                return is_done;
              }),
              0);
  }
  run();
  EXPECT_EQ(std::count(done.begin(), done.end(), 4), 300);
}

TEST(ThreadPool, RefusesNoThreads) { EXPECT_EQ(ThreadPool::Create(0), nullptr); }

}  // namespace
}  // namespace litebnn
