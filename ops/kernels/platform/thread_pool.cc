#include "kernels/platform/thread_pool.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <utility>

namespace litebnn {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

// How long a thread looks for what it waits for before it sleeps: longer than what the caller does between two shared
// loops of a partition, shorter than the float ops between partitions, whose own threads want the core.
constexpr microseconds kSpin(30);
// Threads that have gained so much time may lose it again before they count as a burden.
constexpr microseconds kMostCredit(100);
// Units that a loop is counted in, so that two numbers of them fit a word.
constexpr int64_t kMaxUnits = 4096;
constexpr size_t kCacheLine = 64;

void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || (defined(__ARM_ARCH) && __ARM_ARCH >= 7)
  __asm__ __volatile__("yield" ::: "memory");
#endif
}

// Whether `is_true()` came to hold before it was time to sleep. Yielding the core instead would cost a thread its turn
// for many milliseconds where another process wants the core too.
template <typename IsTrue>
bool Spin(IsTrue is_true) {
  constexpr int kPausesPerLook = 16;
  for (const Clock::time_point end = Clock::now() + kSpin;;) {
    for (int pause = 0; pause < kPausesPerLook; ++pause) {
      if (is_true()) return true;
      Pause();
    }
    if (Clock::now() >= end) return false;
  }
}

// What nobody has taken yet: units [front, back). The caller takes from the front and the others from the back, so that
// each goes on near to where it was, in this loop and in the next one.
struct Unclaimed {
  uint32_t front, back;

  static Unclaimed FromWord(uint32_t word) { return {word & 0xFFFFu, word >> 16}; }
  uint32_t ToWord() const { return back << 16 | front; }
  uint32_t size() const { return back - front; }
};

// What everybody looks at, in another cache line than what changes meanwhile.
struct ApartWord {
  char before[kCacheLine];
  std::atomic<uint32_t> word{0};
};

struct Range {
  uint32_t begin, end;
};

// Whether the others are worth their time. All they have ever cost is at most a fixed time, and 1 / `rests` of what
// passed since.
class Account {
 public:
  explicit Account(int rests) : rests_(rests) {}

  // Whether the caller is to do all by itself, as the others have cost it time.
  bool IsResting() {
    if (is_resting_ && Clock::now() >= end_of_rest_) is_resting_ = false;
    return is_resting_;
  }

  // A loop has taken `shared`, and would have taken the caller alone about `alone`.
  void Enter(Clock::duration alone, Clock::duration shared) {
    credit_ = std::min<Clock::duration>(credit_ + alone - shared, kMostCredit);
    if (rests_ == 0 || credit_ >= Clock::duration::zero()) return;
    is_resting_ = true;
    end_of_rest_ = Clock::now() - credit_ * rests_;
    credit_ = Clock::duration::zero();
  }

 private:
  const int rests_;
  Clock::duration credit_ = kMostCredit;
  bool is_resting_ = false;
  Clock::time_point end_of_rest_;
};

// The threads of a pool but for the calling one, and what they share with it.
class Workers {
 public:
  struct Job {
    ThreadPool::Task task;
    void* context;
    int64_t count;
    int64_t unit;    // items
    uint32_t units;  // at least 2
  };

  Workers() = default;
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (int i = 0; i < count_; ++i) pthread_join(workers_[static_cast<size_t>(i)].id, nullptr);
  }

  // False where memory ran out or a thread could not be started.
  bool Start(int count) {
    workers_.reset(new (std::nothrow) Worker[static_cast<size_t>(count)]);
    for (; workers_ != nullptr && count_ < count; ++count_) {
      Worker& worker = workers_[static_cast<size_t>(count_)];
      worker = {this, count_ + 1, {}};
      const auto work = [](void* argument) -> void* {
        const Worker& self = *static_cast<Worker*>(argument);
        self.workers->Work(self.thread);
        return nullptr;
      };
      if (pthread_create(&worker.id, nullptr, work, &worker) != 0) return false;
    }
    return workers_ != nullptr;
  }

  int count() const { return count_; }
  bool AllSleep() const { return sleeping_.load(std::memory_order_relaxed) == count_; }

  void Run(const Job& job, Account* account) {
    const Clock::time_point start = Clock::now();
    const uint32_t first = PartOf(job.units);
    job_ = job;
    unfinished_.word.store(job.units, std::memory_order_relaxed);
    // Who reads this word as it is here, or as others have changed it since, also sees the job.
    unclaimed_.word.store(Unclaimed{first, job.units}.ToWord());
    WakeOne();
    const Clock::time_point awake = Clock::now();
    uint32_t own = first;
    RunUnits(0, {0, first});
    for (Range range; Claim(0, &range); own += range.end - range.begin) RunUnits(0, range);
    const Clock::duration worked = Clock::now() - awake;
    if (unfinished_.word.fetch_sub(own, std::memory_order_acq_rel) != own) WaitUntilFinished();
    account->Enter(worked * job.units / own, Clock::now() - start);
  }

 private:
  struct Worker {
    Workers* workers;
    int thread;  // the calling thread is 0
    pthread_t id;
  };

  // Of what is left a thread takes so much that parts get small towards the end, where nobody is to wait for the last.
  uint32_t PartOf(uint32_t left) const { return std::max(1u, left / static_cast<uint32_t>(count_ + 1)); }

  bool HasUnclaimed() const { return Unclaimed::FromWord(unclaimed_.word.load()).size() > 0; }

  // Takes a part of the loop of now, if any of it is left: that loop does not end before the part is finished, so that
  // `job_` stays. It does not matter which loops went by since the word was read, as it tells all that has been taken.
  bool Claim(int thread, Range* range) {
    uint32_t word = unclaimed_.word.load();
    for (;;) {
      Unclaimed left = Unclaimed::FromWord(word);
      if (left.size() == 0) return false;
      const uint32_t part = PartOf(left.size());
      if (thread == 0) {
        *range = {left.front, left.front + part};
        left.front += part;
      } else {
        *range = {left.back - part, left.back};
        left.back -= part;
      }
      if (unclaimed_.word.compare_exchange_weak(word, left.ToWord())) return true;
    }
  }

  void RunUnits(int thread, Range range) const {
    job_.task(job_.context, thread, range.begin * job_.unit, std::min(job_.count, range.end * job_.unit));
  }

  void WaitUntilFinished() {
    const auto is_finished = [this] { return unfinished_.word.load(std::memory_order_acquire) == 0; };
    if (Spin(is_finished)) return;
    std::unique_lock<std::mutex> lock(mutex_);
    finished_.wait(lock, is_finished);
  }

  // One is enough, as it wakes the next: the caller has other things to do.
  void WakeOne() {
    if (sleeping_.load() == 0) return;
    // The lock orders this with a worker that has found nothing and is about to sleep.
    {
      const std::lock_guard<std::mutex> lock(mutex_);
    }
    wake_.notify_one();
  }

  void Work(int thread) {
    while (WaitForWork()) {
      for (Range range; Claim(thread, &range);) {
        RunUnits(thread, range);
        const uint32_t units = range.end - range.begin;
        if (unfinished_.word.fetch_sub(units, std::memory_order_acq_rel) == units) {
          const std::lock_guard<std::mutex> lock(mutex_);
          finished_.notify_one();
        }
      }
    }
  }

  // False where the pool ends.
  bool WaitForWork() {
    const auto has_news = [this] { return stop_ || HasUnclaimed(); };
    if (!Spin(has_news)) {
      {
        std::unique_lock<std::mutex> lock(mutex_);
        ++sleeping_;
        wake_.wait(lock, has_news);
        --sleeping_;
      }
      if (HasUnclaimed()) WakeOne();
    }
    return !stop_;
  }

  std::unique_ptr<Worker[]> workers_;
  int count_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_, finished_;
  std::atomic<bool> stop_{false};
  std::atomic<int> sleeping_{0};
  // Written before units are there to be claimed, and read by who has claimed some.
  Job job_ = {};
  ApartWord unclaimed_, unfinished_;
};

class SharingThreadPool final : public ThreadPool {
 public:
  SharingThreadPool(std::unique_ptr<Workers> workers, const SharingLimits& limits)
      : workers_(std::move(workers)), limits_(limits), account_(limits.rests) {}
  ~SharingThreadPool() override {
    // Threads that are not there may have held the locks.
    if (IsInChild()) static_cast<void>(workers_.release());
  }

  int num_threads() const override { return workers_->count() + 1; }

  void ParallelFor(const LoopSize& size, Task task, void* context) override {
    if (size.count <= 0) return;
    const int64_t unit = ItemsOfUnit(size);
    const int64_t units = (size.count + unit - 1) / unit;
    if (units > 1 && IsWorthSharing(size) && !IsInChild()) {
      workers_->Run({task, context, size.count, unit, static_cast<uint32_t>(units)}, &account_);
    } else {
      task(context, 0, 0, size.count);
    }
  }

 private:
  int64_t ItemsOfUnit(const LoopSize& size) const {
    const double least = std::max(limits_.least_part / size.cycles_per_item,
                                  static_cast<double>(size.count) / static_cast<double>(kMaxUnits));
    // No more than all of them, which also keeps the number in its range.
    const auto items = static_cast<int64_t>(std::min(least, static_cast<double>(size.count)));
    return std::max<int64_t>(1, (items + size.grain - 1) / size.grain) * size.grain;
  }

  bool IsWorthSharing(const LoopSize& size) {
    const double cycles = size.cycles_per_item * static_cast<double>(size.count);
    if (workers_->count() == 0 || cycles < limits_.least_loop) return false;
    return (cycles >= limits_.least_loop_to_wake || !workers_->AllSleep()) && !account_.IsResting();
  }

  // Whether the process was forked since, which leaves the workers behind.
  bool IsInChild() const { return getpid() != process_; }

  std::unique_ptr<Workers> workers_;
  const SharingLimits limits_;
  Account account_;
  const pid_t process_ = getpid();
};

}  // namespace

std::unique_ptr<ThreadPool> ThreadPool::Create(int num_threads, const SharingLimits& limits) {
  std::unique_ptr<Workers> workers(new (std::nothrow) Workers);
  if (workers == nullptr || num_threads < 1 || !workers->Start(num_threads - 1)) return nullptr;
  return std::unique_ptr<ThreadPool>(new (std::nothrow) SharingThreadPool(std::move(workers), limits));
}

}  // namespace litebnn
