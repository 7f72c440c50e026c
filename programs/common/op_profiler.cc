#include "common/op_profiler.h"

#include <algorithm>
#include <utility>

#include "common/builtin_names.h"
#include "common/error.h"

namespace litebnn::programs {
namespace {

using Clock = std::chrono::steady_clock;

std::string OpName(const TfLiteRegistration& registration) {
  if (registration.custom_name != nullptr) return registration.custom_name;
  const auto code = static_cast<size_t>(registration.builtin_code);
  return code < std::size(kBuiltinNames) ? kBuiltinNames[code] : Format("BUILTIN_%d", registration.builtin_code);
}

std::string OutputName(const TfLiteContext& context, const TfLiteNode& node) {
  if (node.outputs == nullptr || node.outputs->size == 0) return "";
  const auto index = static_cast<size_t>(node.outputs->data[0]);
  const char* name = index < context.tensors_size ? context.tensors[index].name : nullptr;
  return name != nullptr ? name : "";
}

}  // namespace

OpProfiler* OpProfiler::current_ = nullptr;

OpProfiler::OpProfiler(TfLiteDelegate* last) : delegate_(TfLiteDelegateCreate()), last_(last) {
  current_ = this;
  delegate_.Prepare = &OpProfiler::Prepare;
  delegate_.flags = last != nullptr ? last->flags : int64_t{kTfLiteDelegateFlagsAllowDynamicTensors};
}

OpProfiler::~OpProfiler() { current_ = nullptr; }

void OpProfiler::Reset() {
  for (auto& [node, stopwatch] : stopwatches_) {
    stopwatch.time.calls = 0;
    stopwatch.time.milliseconds = 0;
  }
}

std::vector<OpTime> OpProfiler::Times() const {
  std::vector<OpTime> times;
  for (const TfLiteNode* node : order_) times.push_back(stopwatches_.at(node).time);
  return times;
}

TfLiteStatus OpProfiler::Prepare(TfLiteContext* context, TfLiteDelegate*) {
  OpProfiler& self = *current_;
  if (self.last_ != nullptr) {
    const TfLiteStatus status = self.last_->Prepare(context, self.last_);
    if (status != kTfLiteOk) return status;
  }
  TfLiteIntArray* plan = nullptr;
  const TfLiteStatus status = context->GetExecutionPlan(context, &plan);
  if (status != kTfLiteOk) return status;
  for (int i = 0; i < plan->size; ++i) {
    TfLiteNode* node = nullptr;
    TfLiteRegistration* registration = nullptr;
    if (context->GetNodeAndRegistration(context, plan->data[i], &node, &registration) != kTfLiteOk) continue;
    if (registration->invoke == nullptr || registration->invoke == &OpProfiler::Invoke) continue;
    OpTime time = {plan->data[i], OpName(*registration), OutputName(*context, *node), 0, 0};
    self.order_.push_back(node);
    self.stopwatches_[node] = {std::exchange(registration->invoke, &OpProfiler::Invoke), std::move(time)};
  }
  return kTfLiteOk;
}

TfLiteStatus OpProfiler::Invoke(TfLiteContext* context, TfLiteNode* node) {
  Stopwatch& stopwatch = current_->stopwatches_.at(node);
  const Clock::time_point start = Clock::now();
  const TfLiteStatus status = stopwatch.invoke(context, node);
  stopwatch.time.milliseconds += std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  ++stopwatch.time.calls;
  return status;
}

}  // namespace litebnn::programs
