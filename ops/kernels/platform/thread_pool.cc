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

// The time for which a waiting thread spins before it sleeps. It exceeds the time that the caller alone needs between
// two shared loops of a delegated partition. The runtime's float ops between partitions take longer than this, and
// their own threads need the cores.
constexpr microseconds kSpin(30);
// The upper limit for an Account's credit. The credit is the time that sharing loops has saved, and that it may cost
// again before the caller runs loops alone.
constexpr microseconds kMostCredit(100);
// The maximum number of units in a loop. Two unit numbers must fit one 32-bit word.
constexpr int64_t kMaxUnits = 4096;
constexpr size_t kCacheLine = 64;

void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || (defined(__ARM_ARCH) && __ARM_ARCH >= 7)
  __asm__ __volatile__("yield" ::: "memory");
#elif defined(__riscv)
  __asm__ __volatile__(".4byte 0x0100000f" ::: "memory");  // PAUSE, which older CPUs execute as a fence
#endif
}

// Polls `is_true()` until it returns true, for at most kSpin; returns its last value. The loop does not yield to other
// processes, because it might get the core back only after many milliseconds.
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

// The units of work [front, back) are those that no thread has claimed yet. The caller claims units from the front, and
// the workers claim units from the back. Therefore each thread tends to use the same data in consecutive loops.
struct Unclaimed {
  uint32_t front, back;

  static Unclaimed FromWord(uint32_t word) { return {word & 0xFFFFu, word >> 16}; }
  uint32_t ToWord() const { return back << 16 | front; }
  uint32_t size() const { return back - front; }
};

// An atomic word that has a cache line to itself. Threads poll it, which would be slow if writes to other variables
// took the line away.
struct PaddedWord {
  char before[kCacheLine];
  std::atomic<uint32_t> word{0};
};

struct Range {
  uint32_t begin, end;
};

// Decides if sharing loops with the workers is worth the overhead. The total time lost by sharing never exceeds a
// constant plus 1 / backoff_factor of the time that has passed.
class Account {
 public:
  explicit Account(int backoff_factor) : backoff_factor_(backoff_factor) {}

  // True while the caller runs loops alone, because sharing has cost more time than it saved.
  bool IsBackingOff() {
    if (is_backing_off_ && Clock::now() >= end_of_backoff_) is_backing_off_ = false;
    return is_backing_off_;
  }

  // Records a loop that took the time `shared`, and would have taken about the time `alone` on the caller's thread
  // only.
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

  // Starts `count` threads. Returns false if memory ran out or a thread could not be started.
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
    const uint32_t first = ChunkOf(job.units);
    job_ = job;
    unfinished_.word.store(job.units, std::memory_order_relaxed);
    // This store makes `job_` visible to the other threads. If a thread reads the stored value, or a value that a later
    // claim derives from it, it also sees the job.
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

  // Returns how many units (equal pieces of the loop) a thread claims at once if `left` units are unclaimed. The number
  // is a share of `left`. Later claims are therefore smaller, and all threads finish at nearly the same time.
  uint32_t ChunkOf(uint32_t left) const { return std::max(1u, left / static_cast<uint32_t>(count_ + 1)); }

  bool HasUnclaimed() const { return Unclaimed::FromWord(unclaimed_.word.load()).size() > 0; }

  // Claims a chunk of the current loop; returns false if none is left. The loop cannot end before the claimed chunk is
  // done, so `job_` stays valid. If another thread begins a new loop after `word` is read, the compare-and-exchange
  // either fails or claims units of the new loop.
  bool Claim(int thread, Range* range) {
    uint32_t word = unclaimed_.word.load();
    for (;;) {
      Unclaimed left = Unclaimed::FromWord(word);
      if (left.size() == 0) return false;
      const uint32_t chunk = ChunkOf(left.size());
      if (thread == 0) {
        *range = {left.front, left.front + chunk};
        left.front += chunk;
      } else {
        *range = {left.back - chunk, left.back};
        left.back -= chunk;
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

  // Wakes one worker, which wakes the next one, so that the caller can begin its own chunk at once.
  void WakeOne() {
    if (sleeping_.load() == 0) return;
    // Without this lock, a notification might reach no worker. A worker holds the mutex from its check for unclaimed
    // units until it sleeps. The lock is therefore taken before the check, which then finds the units, or when the
    // worker sleeps already.
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

  // Waits for a loop with unclaimed units. Returns false if the pool is being destroyed.
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
  // Reading the job needs no lock. The job is written before its units can be claimed, and only threads that have
  // claimed units read it.
  Job job_ = {};
  PaddedWord unclaimed_, unfinished_;
};

class SharingThreadPool final : public ThreadPool {
 public:
  SharingThreadPool(std::unique_ptr<Workers> workers, const SharingLimits& limits)
      : workers_(std::move(workers)), limits_(limits), account_(limits.backoff_factor) {}
  ~SharingThreadPool() override {
    // In a forked child process, the worker threads do not exist, and the mutex may be locked forever. Therefore the
    // child does not join the threads, and leaks the memory of the pool.
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
    const double least = std::max(limits_.least_chunk / size.cycles_per_item,
                                  static_cast<double>(size.count) / static_cast<double>(kMaxUnits));
    // The least number of items in a unit is limited to the number of items in the whole loop. A larger number might
    // overflow int64_t.
    const auto items = static_cast<int64_t>(std::min(least, static_cast<double>(size.count)));
    return std::max<int64_t>(1, (items + size.grain - 1) / size.grain) * size.grain;
  }

  bool IsWorthSharing(const LoopSize& size) {
    const double cycles = size.cycles_per_item * static_cast<double>(size.count);
    if (workers_->count() == 0 || cycles < limits_.least_loop) return false;
    return (cycles >= limits_.least_loop_to_wake || !workers_->AllSleep()) && !account_.IsBackingOff();
  }

  // True in a child process that was forked after this pool was made. The child has no worker threads.
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
