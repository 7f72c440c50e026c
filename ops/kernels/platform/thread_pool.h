// A fixed set of threads that share one loop at a time with the calling thread.
#pragma once

#include <cstdint>
#include <memory>

namespace litebnn {

// The size of a loop: its number of items, and their cost.
struct LoopSize {
  int64_t count;           // items in the loop
  int64_t grain;           // a chunk is a multiple of this
  double cycles_per_item;  // estimate for one core
};

// Costs, in cycles of one core. Below them, it does not pay off to share a loop among threads, or to split off a chunk
// of it.
struct SharingLimits {
  // Minimum cost of a shared loop. For a cheaper loop, moving data between cores and waiting for the last thread costs
  // more than sharing saves.
  double least_loop;
  // Minimum cost of a loop for which sleeping threads are woken. For a cheaper loop, waking costs more than sharing
  // saves.
  double least_loop_to_wake;
  // Minimum cost, in cycles of one core, of the chunk of a loop that a thread claims at a time.
  double least_chunk;
  // If sharing has cost more time than it saved, the caller runs loops alone for this multiple of the lost time. The
  // value 0 disables this backoff.
  int backoff_factor;
};

extern const SharingLimits kSharingLimits;

class ThreadPool {
 public:
  // Returns null if a thread could not be started or memory ran out. `num_threads` includes the calling thread, so 1
  // starts no thread.
  static std::unique_ptr<ThreadPool> Create(int num_threads, const SharingLimits& limits = kSharingLimits);
  virtual ~ThreadPool() = default;
  virtual int num_threads() const = 0;

  using Task = void (*)(void* context, int thread, int64_t begin, int64_t end);
  // Runs `task` on chunks of [0, count) that begin at multiples of `grain`, and returns when all chunks are done. The
  // calling thread runs chunks too, and waits only for chunks that other threads have begun. The task's argument
  // `thread` is 0 to num_threads() - 1; a thread runs one chunk at a time. The call allocates no memory. In a forked
  // child the calling thread runs all chunks.
  virtual void ParallelFor(const LoopSize& size, Task task, void* context) = 0;
};

// Runs a loop like pool.ParallelFor, with a callable body(thread, begin, end) instead of a function pointer.
template <typename Body>
void ParallelFor(ThreadPool& pool, const LoopSize& size, Body body) {
  pool.ParallelFor(
      size,
      [](void* context, int thread, int64_t begin, int64_t end) { (*static_cast<Body*>(context))(thread, begin, end); },
      &body);
}

}  // namespace litebnn
