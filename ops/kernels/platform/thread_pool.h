// A fixed set of threads that run one parallel loop at a time.
#pragma once

#include <cstdint>
#include <memory>

namespace litebnn {

class ThreadPool {
 public:
  // Null where a thread could not be started, or memory ran out. `num_threads` counts the calling thread: 1 starts
  // none.
  static std::unique_ptr<ThreadPool> Create(int num_threads);
  virtual ~ThreadPool() = default;
  virtual int num_threads() const = 0;

  using Task = void (*)(void* context, int thread, int64_t begin, int64_t end);
  // Splits [0, count) into at most num_threads() contiguous parts, the first ones a multiple of `grain` long, and runs
  // `task` on each, the calling thread taking part. Returns when all are done. Allocates nothing. In a child that was
  // forked since, the calling thread does all.
  virtual void ParallelFor(int64_t count, int64_t grain, Task task, void* context) = 0;
};

// The same with anything that can be called as body(thread, begin, end).
template <typename Body>
void ParallelFor(ThreadPool& pool, int64_t count, int64_t grain, Body body) {
  pool.ParallelFor(
      count, grain,
      [](void* context, int thread, int64_t begin, int64_t end) { (*static_cast<Body*>(context))(thread, begin, end); },
      &body);
}

}  // namespace litebnn
