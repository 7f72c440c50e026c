#include "common/op_profiler.h"

#include <algorithm>
#include <utility>

#include "common/builtin_names.h"
#include "common/error.h"

namespace litebnn::examples {
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

std::string FormatOpTimes(const std::vector<OpTime>& times) {
  struct Kind {
    std::string op;
    int nodes;
    double milliseconds;  // of one run
  };
  std::vector<Kind> kinds;
  double total = 0;
  const auto per_run = [](const OpTime& time) {
    return time.calls > 0 ? time.milliseconds / static_cast<double>(time.calls) : 0;
  };
  for (const OpTime& time : times) {
    auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const Kind& known) { return known.op == time.op; });
    if (kind == kinds.end()) kind = kinds.insert(kind, {time.op, 0, 0});
    ++kind->nodes;
    kind->milliseconds += per_run(time);
    total += per_run(time);
  }
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const Kind& a, const Kind& b) { return a.milliseconds > b.milliseconds; });
  const auto share = [total](double milliseconds) { return total > 0 ? 100 * milliseconds / total : 0; };

  std::string text = Format("%5s %9s %6s  %-24s %s\n", "node", "ms", "%", "op", "output");
  for (const OpTime& time : times) {
    text += Format("%5d %9.3f %6.2f  %-24s %s\n", time.node, per_run(time), share(per_run(time)), time.op.c_str(),
                   time.output.c_str());
  }
  text += Format("\n%5s %9s %6s  %s\n", "nodes", "ms", "%", "op");
  for (const Kind& kind : kinds) {
    text += Format("%5d %9.3f %6.2f  %s\n", kind.nodes, kind.milliseconds, share(kind.milliseconds), kind.op.c_str());
  }
  return text;
}

}  // namespace litebnn::examples
