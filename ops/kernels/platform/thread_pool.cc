#include "kernels/platform/thread_pool.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

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

// The threads of a pool but for the calling one, and what they share with it.
class Workers {
 public:
  Workers() = default;
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers() {
    stop_ = true;
    Publish();
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

  // Runs `tiles` tiles of `grain` in `parts` parts, at least 2 and at most one for each worker and the calling thread.
  void Run(ThreadPool::Task task, void* context, int64_t count, int64_t grain, int64_t tiles, int64_t parts) {
    job_ = {task, context, count, grain, tiles, parts};
    pending_.store(count_, std::memory_order_relaxed);
    Publish();
    RunPart(0);
    const auto all_done = [this] { return pending_.load(std::memory_order_acquire) == 0; };
    if (Spin(all_done)) return;
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, all_done);
  }

 private:
  struct Worker {
    Workers* workers;
    int thread;  // the calling thread is 0
    pthread_t id;
  };
  struct Job {
    ThreadPool::Task task;
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

  std::unique_ptr<Worker[]> workers_;
  int count_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::atomic<uint64_t> generation_{0};
  std::atomic<int> pending_{0};
  int sleeping_ = 0;
  // Both are written before a generation is published and read after it was seen.
  bool stop_ = false;
  Job job_ = {};
};

class SpinningThreadPool final : public ThreadPool {
 public:
  explicit SpinningThreadPool(std::unique_ptr<Workers> workers) : workers_(std::move(workers)) {}
  ~SpinningThreadPool() override {
    // Threads that are not there may have held the locks.
    if (IsInChild()) static_cast<void>(workers_.release());
  }

  int num_threads() const override { return workers_->count() + 1; }

  void ParallelFor(int64_t count, int64_t grain, Task task, void* context) override {
    if (count <= 0) return;
    const int64_t tiles = (count + grain - 1) / grain;
    const int64_t parts = std::min<int64_t>(num_threads(), tiles);
    if (parts == 1 || IsInChild()) {
      task(context, 0, 0, count);
    } else {
      workers_->Run(task, context, count, grain, tiles, parts);
    }
  }

 private:
  // Whether the process was forked since, which leaves the workers behind.
  bool IsInChild() const { return getpid() != process_; }

  std::unique_ptr<Workers> workers_;
  const pid_t process_ = getpid();
};

}  // namespace

std::unique_ptr<ThreadPool> ThreadPool::Create(int num_threads) {
  std::unique_ptr<Workers> workers(new (std::nothrow) Workers);
  if (workers == nullptr || num_threads < 1 || !workers->Start(num_threads - 1)) return nullptr;
  return std::unique_ptr<ThreadPool>(new (std::nothrow) SpinningThreadPool(std::move(workers)));
}

}  // namespace litebnn
