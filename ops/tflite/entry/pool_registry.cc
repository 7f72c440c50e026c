#include "tflite/entry/pool_registry.h"

#include <algorithm>
#include <mutex>
#include <vector>

namespace litebnn {
namespace {

struct Entry {
  const TfLiteContext* context;
  int num_threads;
  std::weak_ptr<ThreadPool> pool;
};

}  // namespace

std::shared_ptr<ThreadPool> PoolOfInterpreter(const TfLiteContext* context, int num_threads) {
  static std::mutex mutex;
  static std::vector<Entry> entries;

  const std::lock_guard<std::mutex> lock(mutex);
  entries.erase(std::remove_if(entries.begin(), entries.end(), [](const Entry& entry) { return entry.pool.expired(); }),
                entries.end());
  for (const Entry& entry : entries) {
    if (entry.context != context || entry.num_threads != num_threads) continue;
    if (std::shared_ptr<ThreadPool> pool = entry.pool.lock()) return pool;
  }
  std::shared_ptr<ThreadPool> pool = ThreadPool::Create(num_threads);
  if (pool != nullptr) entries.push_back({context, num_threads, pool});
  return pool;
}

}  // namespace litebnn
