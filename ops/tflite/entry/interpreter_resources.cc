#include "tflite/entry/interpreter_resources.h"

#include <algorithm>
#include <mutex>
#include <vector>

namespace litebnn {
namespace {

template <typename T>
struct Entry {
  const TfLiteContext* context;
  int num_threads;
  std::weak_ptr<T> shared;
};

// Returns an entry of the list of resources. If the list has no such entry, `make` creates it. The result is null only
// if `make` returns null.
template <typename T, typename Make>
std::shared_ptr<T> FindOrMake(const TfLiteContext* context, int num_threads, Make make) {
  static std::mutex mutex;
  static std::vector<Entry<T>> entries;

  const std::lock_guard<std::mutex> lock(mutex);
  const auto is_expired = [](const Entry<T>& entry) { return entry.shared.expired(); };
  entries.erase(std::remove_if(entries.begin(), entries.end(), is_expired), entries.end());
  for (const Entry<T>& entry : entries) {
    if (entry.context != context || entry.num_threads != num_threads) continue;
    if (std::shared_ptr<T> shared = entry.shared.lock()) return shared;
  }
  std::shared_ptr<T> made = make();
  if (made != nullptr) entries.push_back({context, num_threads, made});
  return made;
}

}  // namespace

std::shared_ptr<ThreadPool> ThreadPoolOfInterpreter(const TfLiteContext* context, int num_threads) {
  return FindOrMake<ThreadPool>(context, num_threads, [=] { return ThreadPool::Create(num_threads); });
}

std::shared_ptr<RepackBudget> BudgetOfInterpreter(const TfLiteContext* context) {
  return FindOrMake<RepackBudget>(context, 0, [=] { return std::make_shared<RepackBudget>(*context); });
}

}  // namespace litebnn
