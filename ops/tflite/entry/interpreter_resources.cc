#include "tflite/entry/interpreter_resources.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace litebnn {
namespace {

struct Entry {
  const TfLiteContext* context;
  int num_threads;
  std::weak_ptr<InterpreterResources> resources;
};

}  // namespace

std::shared_ptr<InterpreterResources> ResourcesOfInterpreter(const TfLiteContext* context, int num_threads) {
  static std::mutex mutex;
  static std::vector<Entry> entries;

  const std::lock_guard<std::mutex> lock(mutex);
  entries.erase(
      std::remove_if(entries.begin(), entries.end(), [](const Entry& entry) { return entry.resources.expired(); }),
      entries.end());
  for (const Entry& entry : entries) {
    if (entry.context != context || entry.num_threads != num_threads) continue;
    if (std::shared_ptr<InterpreterResources> resources = entry.resources.lock()) return resources;
  }
  std::unique_ptr<ThreadPool> pool = ThreadPool::Create(num_threads);
  if (pool == nullptr) return nullptr;
  const auto resources =
      std::make_shared<InterpreterResources>(InterpreterResources{std::move(pool), RepackBudget(*context)});
  entries.push_back({context, num_threads, resources});
  return resources;
}

}  // namespace litebnn
