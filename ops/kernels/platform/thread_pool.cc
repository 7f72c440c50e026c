#include "kernels/platform/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

namespace litebnn {
namespace {

// How often a thread looks before it sleeps. That takes some hundred microseconds, longer than the float ops between
// two partitions do, as waking up costs as much as a whole convolution.
constexpr int kLooks = 256;
constexpr int kPausesPerLook = 64;

void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || (defined(__ARM_ARCH) && __ARM_ARCH >= 7)
  __asm__ __volatile__("yield" ::: "memory");
#endif
}

// Whether `is_true()` came to hold before it was time to sleep.
template <typename IsTrue>
bool Spin(IsTrue is_true) {
  for (int look = 0; look < kLooks; ++look) {
    for (int pause = 0; pause < kPausesPerLook; ++pause) {
      if (is_true()) return true;
      Pause();
    }
    // Where there are more threads than cores, the one that is waited for needs this core.
    std::this_thread::yield();
  }
  return false;
}

class SpinningThreadPool final : public ThreadPool {
 public:
  ~SpinningThreadPool() override {
    stop_ = true;
    Publish();
    for (std::thread& worker : workers_) worker.join();
  }

  bool Start(int num_threads) {
    try {
      workers_.reserve(static_cast<size_t>(num_threads - 1));
      for (int thread = 1; thread < num_threads; ++thread) workers_.emplace_back([this, thread] { Work(thread); });
    } catch (const std::exception&) {
      return false;
    }
    return true;
  }

  int num_threads() const override { return static_cast<int>(workers_.size()) + 1; }

  void ParallelFor(int64_t count, int64_t grain, Task task, void* context) override {
    if (count <= 0) return;
    const int64_t tiles = (count + grain - 1) / grain;
    const int64_t parts = std::min<int64_t>(num_threads(), tiles);
    if (parts == 1) {
      task(context, 0, 0, count);
      return;
    }
    job_ = {task, context, count, grain, tiles, parts};
    pending_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
    Publish();
    RunPart(0);
    const auto all_done = [this] { return pending_.load(std::memory_order_acquire) == 0; };
    if (Spin(all_done)) return;
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, all_done);
  }

 private:
  struct Job {
    Task task;
    void* context;
    int64_t count, grain, tiles, parts;
  };

  void Publish() {
    // The lock orders this with a worker that has looked at the generation and is about to sleep.
    const std::lock_guard<std::mutex> lock(mutex_);
    generation_.fetch_add(1, std::memory_order_release);
    if (sleeping_ > 0) wake_.notify_all();
  }

  void RunPart(int thread) {
    if (thread >= job_.parts) return;
    const int64_t begin = job_.tiles * thread / job_.parts * job_.grain;
    const int64_t end = std::min(job_.count, job_.tiles * (thread + 1) / job_.parts * job_.grain);
    job_.task(job_.context, thread, begin, end);
  }

  void Work(int thread) {
    // Not the generation of now: one may have been published before this thread ran.
    for (uint64_t seen = 0;;) {
      seen = WaitAfter(seen);
      if (stop_) return;
      RunPart(thread);
      if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        const std::lock_guard<std::mutex> lock(mutex_);
        done_.notify_one();
      }
    }
  }

  uint64_t WaitAfter(uint64_t seen) {
    const auto has_next = [&] { return generation_.load(std::memory_order_acquire) != seen; };
    if (!Spin(has_next)) {
      std::unique_lock<std::mutex> lock(mutex_);
      ++sleeping_;
      wake_.wait(lock, has_next);
      --sleeping_;
    }
    return generation_.load(std::memory_order_acquire);
  }

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::atomic<uint64_t> generation_{0};
  std::atomic<int> pending_{0};
  int sleeping_ = 0;
  // Both are written before a generation is published and read after it was seen.
  bool stop_ = false;
  Job job_ = {};
};

}  // namespace

std::unique_ptr<ThreadPool> ThreadPool::Create(int num_threads) {
  std::unique_ptr<SpinningThreadPool> pool(new (std::nothrow) SpinningThreadPool);
  if (pool == nullptr || num_threads < 1 || !pool->Start(num_threads)) return nullptr;
  return pool;
}

}  // namespace litebnn
