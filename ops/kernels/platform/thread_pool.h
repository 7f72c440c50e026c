// A fixed set of threads that share one loop at a time with the thread that calls.
#pragma once

#include <cstdint>
#include <memory>

namespace litebnn {

// What a loop goes through.
struct LoopSize {
  int64_t count;           // items
  int64_t grain;           // items that stay together
  double cycles_per_item;  // what one takes about, of a core of its own
};

// When a loop is worth sharing, in cycles of one core.
struct SharingLimits {
  // Below it, handing data from core to core and waiting for the last of the others takes longer than they save.
  double least_loop;
  // Below it, so does waking a thread that sleeps.
  double least_loop_to_wake;
  // A thread takes so much at a time at least.
  double least_part;
  // The caller goes without the others for so many times as long as they have cost it; 0 where it never does.
  int rests;
};

extern const SharingLimits kSharingLimits;

class ThreadPool {
 public:
  // Null where a thread could not be started, or memory ran out. `num_threads` counts the calling thread: 1 starts
  // none.
  static std::unique_ptr<ThreadPool> Create(int num_threads, const SharingLimits& limits = kSharingLimits);
  virtual ~ThreadPool() = default;
  virtual int num_threads() const = 0;

  using Task = void (*)(void* context, int thread, int64_t begin, int64_t end);
  // Runs `task` on parts of [0, count) that begin at multiples of `grain`, until all are done. The calling thread takes
  // one after the other, and so do the others that are there in time; it waits for what they have begun only. `thread`,
  // 0 to num_threads() - 1, is never on two parts at once. Allocates nothing. In a child that was forked since, the
  // calling thread does all.
  virtual void ParallelFor(const LoopSize& size, Task task, void* context) = 0;
};

// The same with anything that can be called as body(thread, begin, end).
template <typename Body>
void ParallelFor(ThreadPool& pool, const LoopSize& size, Body body) {
  pool.ParallelFor(
      size,
      [](void* context, int thread, int64_t begin, int64_t end) { (*static_cast<Body*>(context))(thread, begin, end); },
      &body);
}

}  // namespace litebnn
