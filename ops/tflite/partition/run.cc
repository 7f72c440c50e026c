#include "tflite/partition/stages.h"

namespace litebnn {
namespace {

bool RunTask(TfLiteContext* context, ThreadPool& pool, const MemoryPlan& plan, const Task& task, Arena& arena,
             std::vector<Step>* steps) {
  Step& step = (*steps)[task.step];
  const Node node = step.Describe(context);
  // Returns the data of a tensor. If the runtime's tensor does not match what was prepared, reports an error and
  // returns null.
  const auto find = [&](const Binding& binding, const char* role) -> void* {
    if (binding.internal) return arena.data() + plan.buffers[binding.buffer].offset;
    const bool has_data = node.CheckData(role, binding.tensor, binding.bytes, binding.value_bytes);
    return has_data ? context->tensors[binding.tensor].data : nullptr;
  };
  const bool has_inputs = step.ForInputs(task.slice, [&](size_t i) {
    if (step.inputs[i].tensor == kOptionalTensor) return true;
    step.input_data[i] = find(step.inputs[i], InputName(step.type->input_names, i));
    return step.input_data[i] != nullptr;
  });
  if (!has_inputs) return false;
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    step.output_data[i] = find(step.outputs[i], "output");
    if (step.output_data[i] == nullptr) return false;
  }
  step.op->Run(pool, step.input_data.data(), step.output_data.data(),
               arena.data() + plan.buffers[step.workspace].offset, task.slice);
  return true;
}

}  // namespace

bool RunTasks(TfLiteContext* context, ThreadPool& pool, const MemoryPlan& plan, const std::vector<Task>& tasks,
              Arena& arena, std::vector<Step>* steps) {
  for (const Task& task : tasks) {
    if (!RunTask(context, pool, plan, task, arena, steps)) return false;
  }
  return true;
}

}  // namespace litebnn
