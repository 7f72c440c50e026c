// A fixed set of threads that share one loop at a time with the calling thread.
#pragma once

#include <cstdint>
#include <memory>

namespace litebnn {

// The items of a loop and their cost.
struct LoopSize {
  int64_t count;           // items in the loop
  int64_t grain;           // a part is a multiple of this
  double cycles_per_item;  // estimate for one core
};

// Minimum costs of a loop for sharing it, in cycles of one core.
struct SharingLimits {
  // For cheaper loops, moving data between cores and waiting for the last one costs more than sharing saves.
  double least_loop;
  // For cheaper loops, waking a thread that sleeps costs more than sharing saves.
  double least_loop_to_wake;
  // Minimum work that a thread claims at a time.
  double least_part;
  // After the workers have cost time, the caller works alone for this multiple of it; 0 disables the backoff.
  int backoff_factor;
};

extern const SharingLimits kSharingLimits;

class ThreadPool {
 public:
  // Null if a thread could not be started or memory ran out. `num_threads` includes the calling thread: 1 starts none.
  static std::unique_ptr<ThreadPool> Create(int num_threads, const SharingLimits& limits = kSharingLimits);
  virtual ~ThreadPool() = default;
  virtual int num_threads() const = 0;

  using Task = void (*)(void* context, int thread, int64_t begin, int64_t end);
  // Runs `task` on parts of [0, count) that begin at multiples of `grain`, until all are done. The calling thread takes
  // part and waits only for parts that others have begun. `thread` is 0 to num_threads() - 1 and never runs two parts
  // at once. Allocates nothing. In a forked child the calling thread does everything.
  virtual void ParallelFor(const LoopSize& size, Task task, void* context) = 0;
};

// Calls pool.ParallelFor with any callable body(thread, begin, end).
template <typename Body>
void ParallelFor(ThreadPool& pool, const LoopSize& size, Body body) {
  pool.ParallelFor(
      size,
      [](void* context, int thread, int64_t begin, int64_t end) { (*static_cast<Body*>(context))(thread, begin, end); },
      &body);
}

}  // namespace litebnn
