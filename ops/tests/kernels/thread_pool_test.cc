#include "kernels/platform/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace litebnn {
namespace {

// Runs a loop over `count` items, and returns how often each item was done.
std::vector<int> TimesDone(ThreadPool& pool, int64_t count, int64_t grain) {
  std::vector<int> done(static_cast<size_t>(count), 0);
  ParallelFor(pool, {count, grain, 1}, [&](int thread, int64_t begin, int64_t end) {
    EXPECT_EQ(begin % grain, 0);
    EXPECT_LT(begin, end);
    EXPECT_GE(thread, 0);
    EXPECT_LT(thread, pool.num_threads());
    for (int64_t i = begin; i < end; ++i) ++done[static_cast<size_t>(i)];
  });
  return done;
}

TEST(ThreadPool, EveryItemIsDoneOnce) {
  for (int threads : {1, 2, 3, 7}) {
    const auto pool = ThreadPool::Create(threads);
    ASSERT_NE(pool, nullptr);
    EXPECT_EQ(pool->num_threads(), threads);
    // The test runs many short loops, so that it finds workers both spinning and asleep.
    for (int64_t count = 0; count < 300; ++count) {
      for (int64_t grain : {1, 4})
        EXPECT_EQ(TimesDone(*pool, count, grain), std::vector<int>(static_cast<size_t>(count), 1));
    }
    EXPECT_EQ(TimesDone(*pool, 100003, 1), std::vector<int>(100003, 1));
  }
}

TEST(ThreadPool, AThreadIsOnOnePartAtATime) {
  constexpr int kThreads = 4;
  const auto pool = ThreadPool::Create(kThreads);
  ASSERT_NE(pool, nullptr);
  // The counter is not atomic, so that ThreadSanitizer reports concurrent use of a thread's scratch memory.
  struct Scratch {
    int value = 0;
    char apart[60];
  } scratch[kThreads];
  for (int round = 0; round < 1000; ++round) {
    ParallelFor(*pool, {64, 1, 1}, [&](int thread, int64_t begin, int64_t end) {
      scratch[thread].value += static_cast<int>(end - begin);
    });
  }
  int done = 0;
  for (const Scratch& each : scratch) done += each.value;
  EXPECT_EQ(done, 64 * 1000);
}

TEST(ThreadPool, SmallLoopsAreTheCallersAlone) {
  SharingLimits limits = kSharingLimits;
  limits.least_loop = 100;
  const auto pool = ThreadPool::Create(3, limits);
  ASSERT_NE(pool, nullptr);
  const auto parts_of = [&](int64_t count, double cycles_per_item) {
    std::atomic<int> chunks{0};
    ParallelFor(*pool, {count, 1, cycles_per_item}, [&](int, int64_t, int64_t) { ++chunks; });
    return chunks.load();
  };
  EXPECT_EQ(parts_of(99, 1), 1);
  EXPECT_EQ(parts_of(9, 11), 1);
  EXPECT_GT(parts_of(100, 1), 3);
  EXPECT_GT(parts_of(10, 11), 3);
}

TEST(ThreadPool, PartsAreNotTooSmall) {
  SharingLimits limits = kSharingLimits;
  limits.least_chunk = 50;
  const auto pool = ThreadPool::Create(3, limits);
  ASSERT_NE(pool, nullptr);
  std::atomic<int64_t> items{0};
  ParallelFor(*pool, {1000, 4, 5}, [&](int, int64_t begin, int64_t end) {
    // A chunk must cost at least fifty cycles, which ten items do, and begin at a multiple of four items. Only the last
    // chunk may be smaller.
    EXPECT_TRUE(end - begin >= 10 || end == 1000);
    EXPECT_EQ(begin % 4, 0);
    items += end - begin;
  });
  EXPECT_EQ(items, 1000);
}

TEST(ThreadPool, ALoopGoesOnWithoutAThreadThatIsHeldUp) {
  const auto pool = ThreadPool::Create(2);
  ASSERT_NE(pool, nullptr);
  for (int round = 0; round < 100; ++round) {
    std::atomic<int64_t> done{0};
    ParallelFor(*pool, {64, 1, 1}, [&](int thread, int64_t begin, int64_t end) {
      // The worker thread does not end its chunk before the caller has done all other chunks. Therefore the caller has
      // to wait for the worker.
      while (thread == 1 && done + (end - begin) < 64) std::this_thread::yield();
      done += end - begin;
    });
    EXPECT_EQ(done, 64);
  }
}

TEST(ThreadPool, ThreadsThatCostTimeAreLeftOut) {
  SharingLimits limits = kSharingLimits;
  limits.backoff_factor = 1000000;
  const auto pool = ThreadPool::Create(2, limits);
  ASSERT_NE(pool, nullptr);
  // The worker spends a millisecond on each chunk, for which the caller waits. Once the worker has cost too much time,
  // the caller works alone.
  std::atomic<bool> has_other{true};
  for (int round = 0; has_other && round < 100000; ++round) {
    has_other = false;
    ParallelFor(*pool, {2, 1, 1}, [&](int thread, int64_t begin, int64_t end) {
      if (end - begin == 2) return;
      has_other = true;
      const auto start = std::chrono::steady_clock::now();
      while (thread == 1 && std::chrono::steady_clock::now() - start < std::chrono::milliseconds(1)) {
      }
    });
  }
  EXPECT_FALSE(has_other);
}

// Runs `body` in a forked child and returns its exit status: 0 if `body` returned true. A signal kills a child that
// hangs.
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
    ParallelFor(*pool, {300, 4, 1}, [&](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++done[static_cast<size_t>(i)];
    });
  };
  // At the first fork the pool's workers are spinning, at the last fork they are asleep.
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
