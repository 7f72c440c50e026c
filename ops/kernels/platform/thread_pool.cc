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

// Time for which a waiting thread spins before it sleeps. It exceeds the caller's work between two shared loops of a
// partition. The float ops between partitions take longer, and their threads need the core.
constexpr microseconds kSpin(30);
// Upper limit for the credit: time that the workers have saved, and may cost again before the caller works alone.
constexpr microseconds kMostCredit(100);
// Limit for the units of a loop, so that two unit numbers fit a word.
constexpr int64_t kMaxUnits = 4096;
constexpr size_t kCacheLine = 64;

void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || (defined(__ARM_ARCH) && __ARM_ARCH >= 7)
  __asm__ __volatile__("yield" ::: "memory");
#elif defined(__riscv)
  __asm__ __volatile__(".4byte 0x0100000f" ::: "memory");  // PAUSE, which older CPUs take for a fence
#endif
}

// True if `is_true()` held before the spin time ended. It does not yield, which could cost many milliseconds if another
// process wants the core.
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

// The units that no thread has claimed: [front, back). The caller claims from the front and the workers from the back.
// Each so stays near its own data, in this loop and in the next one.
struct Unclaimed {
  uint32_t front, back;

  static Unclaimed FromWord(uint32_t word) { return {word & 0xFFFFu, word >> 16}; }
  uint32_t ToWord() const { return back << 16 | front; }
  uint32_t size() const { return back - front; }
};

// A word on a cache line of its own, because threads poll it while its neighbours change.
struct PaddedWord {
  char before[kCacheLine];
  std::atomic<uint32_t> word{0};
};

struct Range {
  uint32_t begin, end;
};

// Decides if the workers are worth their overhead. The time that they have cost never exceeds a constant plus 1 /
// backoff_factor of the time that has passed.
class Account {
 public:
  explicit Account(int backoff_factor) : backoff_factor_(backoff_factor) {}

  // True while the caller works alone, because the workers have cost more time than they saved.
  bool IsBackingOff() {
    if (is_backing_off_ && Clock::now() >= end_of_backoff_) is_backing_off_ = false;
    return is_backing_off_;
  }

  // Records a loop that took `shared`, and would have taken about `alone` on the caller's thread.
  void Enter(Clock::duration alone, Clock::duration shared) {
    credit_ = std::min<Clock::duration>(credit_ + alone - shared, kMostCredit);
    if (backoff_factor_ == 0 || credit_ >= Clock::duration::zero()) return;
    is_backing_off_ = true;
    end_of_backoff_ = Clock::now() - credit_ * backoff_factor_;
    credit_ = Clock::duration::zero();
  }

 private:
  const int backoff_factor_;
  Clock::duration credit_ = kMostCredit;
  bool is_backing_off_ = false;
  Clock::time_point end_of_backoff_;
};

// The worker threads of a pool, and the state that they share with the calling thread.
class Workers {
 public:
  struct Job {
    ThreadPool::Task task;
    void* context;
    int64_t count;
    int64_t unit;    // items per unit
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

  // False if memory ran out or a thread could not be started.
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
    // A thread that reads this value, or a later one derived from it, also sees the job.
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
    int thread;  // the calling thread is number 0
    pthread_t id;
  };

  // Units that a thread claims next: a share of what is left, so that parts shrink and threads finish at the same time.
  uint32_t PartOf(uint32_t left) const { return std::max(1u, left / static_cast<uint32_t>(count_ + 1)); }

  bool HasUnclaimed() const { return Unclaimed::FromWord(unclaimed_.word.load()).size() > 0; }

  // Claims a part of the current loop if any is left. That loop cannot end before the part is done, so `job_` stays
  // valid. Loops that ended since the word was read do no harm, because the word alone holds all claims.
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

  // Wakes one worker, which wakes the next, so that the caller can go on.
  void WakeOne() {
    if (sleeping_.load() == 0) return;
    // The lock orders this after the check of a worker that is about to sleep.
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

  // False if the pool is being destroyed.
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
  // The job is written before its units can be claimed, and read only by threads that have claimed some.
  Job job_ = {};
  PaddedWord unclaimed_, unfinished_;
};

class SharingThreadPool final : public ThreadPool {
 public:
  SharingThreadPool(std::unique_ptr<Workers> workers, const SharingLimits& limits)
      : workers_(std::move(workers)), limits_(limits), account_(limits.backoff_factor) {}
  ~SharingThreadPool() override {
    // In a forked child the workers do not exist, and may have held the locks.
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
    // At most all items, which also prevents an overflow.
    const auto items = static_cast<int64_t>(std::min(least, static_cast<double>(size.count)));
    return std::max<int64_t>(1, (items + size.grain - 1) / size.grain) * size.grain;
  }

  bool IsWorthSharing(const LoopSize& size) {
    const double cycles = size.cycles_per_item * static_cast<double>(size.count);
    if (workers_->count() == 0 || cycles < limits_.least_loop) return false;
    return (cycles >= limits_.least_loop_to_wake || !workers_->AllSleep()) && !account_.IsBackingOff();
  }

  // True if the process was forked after construction; a child has no workers.
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
