#include <algorithm>
#include <initializer_list>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tflite/ops/op_list.h"
#include "tflite/partition/stages.h"

namespace litebnn {
namespace {

// The number of times that steps read each tensor.
std::unordered_map<int, int> CountReaders(const std::vector<Step>& steps) {
  std::unordered_map<int, int> readers;
  for (const Step& step : steps) {
    for (const Binding& input : step.inputs) ++readers[input.tensor];
  }
  return readers;
}

// Makes a step run the nodes of a step that is fused into it. Their list is moved, as long chains of fused steps would
// otherwise copy their nodes again and again.
void TakeNodes(Step* step, Step* taken) {
  const std::vector<int> nodes = std::move(taken->nodes);
  step->nodes.insert(step->nodes.end(), nodes.begin(), nodes.end());
}

// The class finds steps that can be fused into the step that reads their output, because no other step reads it.
class SoleReaders {
 public:
  SoleReaders(const std::unordered_set<int>& outputs, std::vector<Step>* steps)
      : outputs_(outputs), steps_(*steps), readers_(CountReaders(*steps)), is_taken_(steps->size()) {
    for (size_t i = 0; i < steps_.size(); ++i) {
      for (const Binding& output : steps_[i].outputs) writers_[output.tensor] = i;
    }
  }

  // Returns the step that writes `tensor`; null if its type is none of `types`. Also returns null if the tensor is read
  // more than once, or by the runtime.
  const Step* Find(int tensor, std::initializer_list<const OpType*> types) const {
    const auto writer = writers_.find(tensor);
    if (writer == writers_.end()) return nullptr;
    if (std::find(types.begin(), types.end(), steps_[writer->second].type) == types.end()) return nullptr;
    if (readers_.find(tensor)->second != 1 || outputs_.count(tensor) != 0) return nullptr;
    return &steps_[writer->second];
  }

  // Returns the step that Find returns, whose nodes `reader` runs from now on. RemoveTaken then removes it from the
  // list of steps.
  Step* Take(Step* reader, int tensor, std::initializer_list<const OpType*> types) {
    const Step* const found = Find(tensor, types);
    if (found == nullptr) return nullptr;
    is_taken_[Number(*found)] = true;
    Step& taken = steps_[Number(*found)];
    TakeNodes(reader, &taken);
    return &taken;
  }

  bool IsTaken(const Step& step) const { return is_taken_[Number(step)]; }

  void RemoveTaken() {
    std::vector<Step> kept;
    for (Step& step : steps_) {
      if (!IsTaken(step)) kept.push_back(std::move(step));
    }
    steps_ = std::move(kept);
  }

 private:
  size_t Number(const Step& step) const { return static_cast<size_t>(&step - steps_.data()); }

  const std::unordered_set<int>& outputs_;
  std::vector<Step>& steps_;
  const std::unordered_map<int, int> readers_;
  std::unordered_map<int, size_t> writers_;
  std::vector<bool> is_taken_;
};

}  // namespace

void FuseGates(const std::unordered_set<int>& outputs, std::vector<Step>* steps) {
  SoleReaders sole_readers(outputs, steps);
  // The loop goes backwards, because a chain of steps is fused into its last step.
  for (auto step = steps->rbegin(); step != steps->rend(); ++step) {
    const bool adds = step->type == &kAddOpType, is_prelu = step->type == &kPReluOpType;
    if (sole_readers.IsTaken(*step) || (!adds && !is_prelu)) continue;
    const Step* last = is_prelu ? &*step : nullptr;
    size_t image = 0;
    for (size_t i = 0; last == nullptr && i < 2; ++i) {
      image = i;
      last = sole_readers.Take(&*step, step->inputs[i].tensor, {&kPReluOpType, &kRectifiedGateOpType, &kGateOpType});
    }
    if (last == nullptr) continue;
    const Step* const prelu = last->type == &kPReluOpType ? last : nullptr;
    const Step* const gate =
        prelu == nullptr ? last : sole_readers.Take(&*step, prelu->inputs[0].tensor, {&kGateOpType});
    if (gate == nullptr && is_prelu) continue;
    const Binding none = {kOptionalTensor};
    const Binding addend = adds ? step->inputs[1 - image] : none, alpha = prelu == nullptr ? none : prelu->inputs[1];
    step->inputs = gate == nullptr ? std::vector<Binding>{prelu->inputs[0], none} : gate->inputs;
    step->inputs.push_back(alpha);
    step->inputs.push_back(addend);
    step->type = gate != nullptr && gate->type == &kRectifiedGateOpType ? &kRectifiedGatedSumOpType : &kGatedSumOpType;
  }
  sole_readers.RemoveTaken();
}

void FuseConvolutions(const std::unordered_set<int>& outputs, std::vector<Step>* steps) {
  SoleReaders sole_readers(outputs, steps);
  for (Step& step : *steps) {
    const bool adds_int8 = step.type == &kInt8AddOpType, adds = step.type == &kAddOpType || adds_int8;
    const bool gates = step.type == &kGatedSumOpType && step.inputs.back().tensor != kOptionalTensor;
    if (!adds && !gates) continue;
    // If convolutions write both addends, the addition is fused with the later convolution, whose input is still in the
    // caches.
    const Step* const first = sole_readers.Find(step.inputs[0].tensor, {&kBconv2dOpType});
    const Step* const second = sole_readers.Find(step.inputs[1].tensor, {&kBconv2dOpType});
    if (first == nullptr && second == nullptr) continue;
    const size_t image = first == nullptr || (second != nullptr && second > first) ? 1 : 0;
    const Step& convolution = *sole_readers.Take(&step, step.inputs[image].tensor, {&kBconv2dOpType});
    std::vector<Binding> inputs = convolution.inputs;
    inputs.resize(kBconv2dOpType.max_inputs, {kOptionalTensor});
    if (adds_int8) step.fused_outputs = {convolution.outputs[0].tensor};
    step.inputs.erase(step.inputs.begin() + static_cast<ptrdiff_t>(image));
    inputs.insert(inputs.end(), step.inputs.begin(), step.inputs.end());
    step.inputs = std::move(inputs);
    step.type = adds_int8 ? &kBconv2dInt8AddOpType : adds ? &kBconv2dAddOpType : &kGatedBconv2dOpType;
    step.index = convolution.index;
    step.options = convolution.options;
    step.options_size = convolution.options_size;
  }
  sole_readers.RemoveTaken();
}

void FuseAverages(std::vector<Step>* steps) {
  std::unordered_map<int, size_t> first_readers;  // the first packing or average that reads each image
  std::vector<Step> kept;
  for (Step& step : *steps) {
    const bool averages = step.type == &kFloatAverageOpType;
    if (averages || step.type == &kQuantizeOpType) {
      const auto [found, is_first] = first_readers.try_emplace(step.inputs[0].tensor, kept.size());
      if (!is_first && kept[found->second].type == (averages ? &kQuantizeOpType : &kFloatAverageOpType)) {
        Step& joined = kept[found->second];
        joined.outputs.insert(averages ? joined.outputs.end() : joined.outputs.begin(), step.outputs[0]);
        TakeNodes(&joined, &step);
        if (averages) joined.builtin_data = step.builtin_data;
        joined.type = &kAverageQuantizeOpType;
        continue;
      }
    }
    kept.push_back(std::move(step));
  }
  *steps = std::move(kept);
}

void FuseBatchNorms(const std::unordered_set<int>& outputs, std::vector<Step>* steps) {
  struct Norm {
    const OpType &scale, &shift, &fused;
  };
  const Norm norms[] = {{kScaleOpType, kShiftOpType, kAffineQuantizeOpType},
                        {kInt8ScaleOpType, kInt8ShiftOpType, kInt8NormQuantizeOpType}};
  SoleReaders sole_readers(outputs, steps);
  for (Step& sign : *steps) {
    const bool averages = sign.type == &kAverageQuantizeOpType;
    if (!averages && sign.type != &kQuantizeOpType) continue;
    // If an op of type `type` produces the input of `sign`, removes that op: `sign` then reads the input of that op.
    // Returns the constant operand of that op, which becomes an operand of `sign`.
    const auto take = [&](const OpType& type, int* fused_output) -> Binding {
      const int image = sign.inputs[0].tensor;
      const Step* const taken = sole_readers.Take(&sign, image, {&type});
      if (taken == nullptr) return {kOptionalTensor};
      *fused_output = image;
      sign.inputs[0] = taken->inputs[0];
      return taken->inputs[1];
    };
    for (const Norm& norm : norms) {
      std::vector<int> fused_outputs = {kOptionalTensor, kOptionalTensor};
      const Binding addend = take(norm.shift, &fused_outputs[1]);
      const Binding multiplier = take(norm.scale, &fused_outputs[0]);
      if (addend.tensor == kOptionalTensor && multiplier.tensor == kOptionalTensor) continue;
      if (!averages) sign.type = &norm.fused;
      sign.fused_outputs = std::move(fused_outputs);
      sign.inputs.push_back(multiplier);
      sign.inputs.push_back(addend);
      break;
    }
  }
  sole_readers.RemoveTaken();
}

void FusePackings(const std::unordered_set<int>& outputs, std::vector<Step>* steps) {
  SoleReaders sole_readers(outputs, steps);
  for (Step& step : *steps) {
    const OpType* type = step.type == &kConcatenationOpType ? &kAffineQuantizeOpType : nullptr;
    if (type != nullptr && sole_readers.Find(step.inputs[0].tensor, {&kInt8NormQuantizeOpType}) != nullptr) {
      type = &kInt8NormQuantizeOpType;
    }
    size_t count = 0;  // inputs of all packings; a packing may have several slices already
    for (const Binding& slice : step.inputs) {
      const Step* const packing = type != nullptr ? sole_readers.Find(slice.tensor, {type}) : nullptr;
      type = packing != nullptr ? type : nullptr;
      if (packing != nullptr) count += packing->inputs.size();
    }
    if (type == nullptr || count > type->max_inputs) continue;
    const std::vector<Binding> slices = std::move(step.inputs);
    step.inputs.clear();
    for (const Binding& slice : slices) {
      Step& packing = *sole_readers.Take(&step, slice.tensor, {type});
      // The lists are moved, so that they do not take memory until all steps that were taken are removed.
      const std::vector<Binding> inputs = std::move(packing.inputs);
      const std::vector<int> fused = std::move(packing.fused_outputs);
      step.inputs.insert(step.inputs.end(), inputs.begin(), inputs.end());
      step.fused_outputs.insert(step.fused_outputs.end(), fused.begin(), fused.end());
    }
    step.type = type;
  }
  sole_readers.RemoveTaken();
}

void FuseImages(const std::unordered_set<int>& outputs, std::vector<Step>* steps) {
  SoleReaders sole_readers(outputs, steps);
  // The loop goes backwards, because a chain of steps is fused into its last step.
  for (auto step = steps->rbegin(); step != steps->rend(); ++step) {
    const bool rectifies = step->type == &kRectifiedShiftOpType;
    const bool adds = rectifies || step->type == &kShiftOpType, multiplies = step->type == &kScaleOpType;
    const bool pools = step->type == &kMaxPool2dOpType;
    if (sole_readers.IsTaken(*step) || (!adds && !multiplies && !pools)) continue;
    Binding image = step->inputs[0];
    const Binding addend = adds ? step->inputs[1] : Binding{kOptionalTensor};
    Binding multiplier = multiplies ? step->inputs[1] : Binding{kOptionalTensor};
    const auto take = [&](const OpType& type) {
      const Step* const taken = sole_readers.Take(&*step, image.tensor, {&type});
      if (taken != nullptr) image = taken->inputs[0];
      return taken;
    };
    const Step* const pool = adds ? take(kMaxPool2dOpType) : nullptr;
    const Step* const scale = multiplies ? nullptr : take(kScaleOpType);
    const Step* const whole = take(kConcatenationOpType);
    if (pool == nullptr && scale == nullptr && whole == nullptr) continue;
    if (scale != nullptr) multiplier = scale->inputs[1];
    if (pool != nullptr) {
      step->index = pool->index;
      step->builtin_data = pool->builtin_data;
    }
    const OpType& pool_type = rectifies ? kRectifiedMaxPool2dOpType : kAffineMaxPool2dOpType;
    step->type = pools || pool != nullptr ? &pool_type : &kAffineOpType;
    step->inputs = whole == nullptr ? std::vector<Binding>{image} : whole->inputs;
    step->inputs.push_back(multiplier);
    step->inputs.push_back(addend);
  }
  sole_readers.RemoveTaken();
}

}  // namespace litebnn
