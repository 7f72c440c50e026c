#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tflite/ops/channel_slices.h"
#include "tflite/ops/op_list.h"
#include "tflite/partition/stages.h"

namespace litebnn {
namespace {

const TfLiteAddParams kRelu = {kTfLiteActRelu};
const TfLitePoolParams kPool = {kTfLitePaddingSame, 2, 2, 2, 2, kTfLiteActNone};

Step MakeStep(const OpType& type, const std::vector<int>& inputs, int output, const void* builtin_data = nullptr) {
  Step step = {&type, 0, {}, {{output}}, nullptr, 0, builtin_data};
  for (int tensor : inputs) step.inputs.push_back({tensor});
  return step;
}

std::vector<Step> MakeSteps(Step first, Step second) {
  std::vector<Step> steps;
  steps.push_back(std::move(first));
  steps.push_back(std::move(second));
  return steps;
}

std::vector<int> Tensors(const std::vector<Binding>& bindings) {
  std::vector<int> tensors;
  for (const Binding& binding : bindings) tensors.push_back(binding.tensor);
  return tensors;
}

TEST(Fuse, EachTypeHasANameOfItsOwn) {
  std::set<std::string> names;
  for (const OpType* type :
       {&kBconv2dAddOpType, &kAffineQuantizeOpType, &kAffineOpType, &kAffineMaxPool2dOpType, &kRectifiedMaxPool2dOpType,
        &kGatedSumOpType, &kRectifiedGatedSumOpType, &kInt8NormQuantizeOpType, &kAverageQuantizeOpType}) {
    EXPECT_TRUE(names.insert(type->name).second) << type->name;
  }
}

TEST(Fuse, AnAdditionIntoTheConvolutionBeforeIt) {
  for (const std::vector<int>& addends : {std::vector<int>{7, 8}, {8, 7}}) {
    std::vector<Step> steps =
        MakeSteps(MakeStep(kBconv2dOpType, {0, 1, 2}, 7), MakeStep(kAddOpType, addends, 9, &kRelu));
    FuseConvolutions({9}, &steps);
    ASSERT_EQ(steps.size(), 1u);
    EXPECT_EQ(steps[0].type, &kBconv2dAddOpType);
    EXPECT_EQ(Tensors(steps[0].inputs), (std::vector<int>{0, 1, 2, kOptionalTensor, kOptionalTensor, 8}));
    EXPECT_EQ(Tensors(steps[0].outputs), (std::vector<int>{9}));
    EXPECT_EQ(steps[0].builtin_data, &kRelu);
  }
}

TEST(Fuse, AConvolutionWithAnyOfItsInputs) {
  for (size_t count = kBconv2dOpType.min_inputs; count <= kBconv2dOpType.max_inputs; ++count) {
    std::vector<Step> steps =
        MakeSteps(MakeStep(kBconv2dOpType, std::vector<int>(count, 1), 7), MakeStep(kAddOpType, {7, 8}, 9, &kRelu));
    FuseConvolutions({9}, &steps);
    EXPECT_EQ(steps.size(), 1u) << count;
  }
}

TEST(Fuse, NoAdditionOfOthers) {
  std::vector<Step> steps = MakeSteps(MakeStep(kBconv2dOpType, {0, 1}, 7), MakeStep(kAddOpType, {8, 10}, 9, &kRelu));
  steps.push_back(MakeStep(kQuantizeOpType, {7}, 11));
  FuseConvolutions({9, 11}, &steps);
  EXPECT_EQ(steps.size(), 3u);
}

TEST(Fuse, AConvolutionComesWhereItsReaderWas) {
  std::vector<Step> steps = MakeSteps(MakeStep(kBconv2dOpType, {0, 1}, 7), MakeStep(kQuantizeOpType, {8}, 10));
  steps.push_back(MakeStep(kAddOpType, {7, 12}, 9, &kRelu));
  const uint8_t options = 0;
  steps[0].index = 5;
  steps[0].options = &options;
  steps[0].options_size = 1;
  FuseConvolutions({9, 10}, &steps);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].type, &kQuantizeOpType);
  EXPECT_EQ(steps[1].type, &kBconv2dAddOpType);
  // A fused step has the index and the options of its convolution, so that errors name the convolution's node.
  EXPECT_EQ(steps[1].index, 5);
  EXPECT_EQ(steps[1].options, &options);
  EXPECT_EQ(steps[1].options_size, 1u);
  EXPECT_EQ(steps[1].builtin_data, &kRelu);
}

TEST(Fuse, TheLaterOfTwoConvolutionsThatAreAdded) {
  for (const std::vector<int>& addends : {std::vector<int>{7, 8}, {8, 7}}) {
    std::vector<Step> steps = MakeSteps(MakeStep(kBconv2dOpType, {0, 1}, 7), MakeStep(kBconv2dOpType, {2, 3}, 8));
    steps.push_back(MakeStep(kAddOpType, addends, 9, &kRelu));
    FuseConvolutions({9}, &steps);
    ASSERT_EQ(steps.size(), 2u);
    EXPECT_EQ(steps[0].type, &kBconv2dOpType);
    EXPECT_EQ(steps[1].inputs[0].tensor, 2);
    EXPECT_EQ(steps[1].inputs.back().tensor, 7);
  }
}

TEST(Fuse, AConvolutionOnce) {
  std::vector<Step> steps = MakeSteps(MakeStep(kBconv2dOpType, {0, 1}, 7), MakeStep(kAddOpType, {7, 8}, 9, &kRelu));
  steps.push_back(MakeStep(kAddOpType, {9, 10}, 11, &kRelu));
  FuseConvolutions({11}, &steps);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[1].type, &kAddOpType);
}

// The step that FuseGates makes of a MUL, a PRELU and an ADD, each of which is optional. MUL multiplies the tensors 7
// and 1, PRELU's slope is tensor 3, and ADD adds tensor 5.
Step MakeGatedStep(const OpType& type, bool multiplies, bool gate_first, bool leaks, bool adds) {
  std::vector<int> inputs = {7, multiplies ? 1 : kOptionalTensor, leaks ? 3 : kOptionalTensor};
  if (gate_first) std::swap(inputs[0], inputs[1]);
  inputs.push_back(adds ? 5 : kOptionalTensor);
  return MakeStep(type, inputs, 6, adds ? &kRelu : nullptr);
}

TEST(Fuse, AGateThatEndsWithAnAdditionIntoTheConvolution) {
  for (unsigned which = 0; which < 16; ++which) {
    const bool multiplies = which % 2 == 1, gate_first = multiplies && which / 2 % 2 == 1, leaks = which / 4 % 2 == 1;
    const bool adds = which / 8 % 2 == 1;
    std::vector<Step> steps = MakeSteps(MakeStep(kBconv2dOpType, {0, 1, 2}, 7),
                                        MakeGatedStep(kGatedSumOpType, multiplies, gate_first, leaks, adds));
    FuseConvolutions({6}, &steps);
    ASSERT_EQ(steps.size(), adds ? 1u : 2u) << which;
    if (!adds) continue;
    EXPECT_EQ(steps[0].type, &kGatedBconv2dOpType);
    EXPECT_EQ(Tensors(steps[0].inputs),
              (std::vector<int>{0, 1, 2, kOptionalTensor, kOptionalTensor, multiplies ? 1 : kOptionalTensor,
                                leaks ? 3 : kOptionalTensor, 5}));
    EXPECT_EQ(Tensors(steps[0].outputs), (std::vector<int>{6}));
    EXPECT_EQ(steps[0].builtin_data, &kRelu);
  }
}

TEST(Fuse, NoOtherGateIntoTheConvolution) {
  // In three cases, a convolution is not fused with the gate after it. The gate's MUL has a RELU, the convolution has
  // another consumer, or the gate adds the convolution's output instead of multiplying it.
  std::vector<Step> steps =
      MakeSteps(MakeStep(kBconv2dOpType, {0, 1}, 7), MakeGatedStep(kRectifiedGatedSumOpType, true, false, false, true));
  FuseConvolutions({6}, &steps);
  EXPECT_EQ(steps.size(), 2u);
  steps = MakeSteps(MakeStep(kBconv2dOpType, {0, 1}, 7), MakeGatedStep(kGatedSumOpType, true, false, true, true));
  FuseConvolutions({6, 7}, &steps);
  EXPECT_EQ(steps.size(), 2u);
  steps = MakeSteps(MakeStep(kBconv2dOpType, {0, 1}, 5), MakeGatedStep(kGatedSumOpType, true, false, true, true));
  FuseConvolutions({6}, &steps);
  EXPECT_EQ(steps.size(), 2u);
}

TEST(Fuse, NothingThatIsReadElsewhere) {
  // The test has three convolutions, none of which is fused with the addition. The runtime reads the first output, the
  // addition reads the second output twice, and another node reads the third.
  std::vector<Step> steps = MakeSteps(MakeStep(kBconv2dOpType, {0, 1}, 7), MakeStep(kAddOpType, {7, 8}, 9, &kRelu));
  FuseConvolutions({7, 9}, &steps);
  EXPECT_EQ(steps.size(), 2u);
  steps = MakeSteps(MakeStep(kBconv2dOpType, {0, 1}, 7), MakeStep(kAddOpType, {7, 7}, 9, &kRelu));
  FuseConvolutions({9}, &steps);
  EXPECT_EQ(steps.size(), 2u);
  steps = MakeSteps(MakeStep(kBconv2dOpType, {0, 1}, 7), MakeStep(kAddOpType, {7, 8}, 9, &kRelu));
  steps.push_back(MakeStep(kQuantizeOpType, {7}, 10));
  FuseConvolutions({9, 10}, &steps);
  EXPECT_EQ(steps.size(), 3u);
}

TEST(Fuse, ABatchNormIntoThePackingOfSigns) {
  std::vector<Step> steps = MakeSteps(MakeStep(kScaleOpType, {0, 1}, 2), MakeStep(kShiftOpType, {2, 3}, 4));
  steps.push_back(MakeStep(kMaxPool2dOpType, {5}, 6));
  steps.push_back(MakeStep(kQuantizeOpType, {4}, 7));
  FuseBatchNorms({6, 7}, &steps);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[1].type, &kAffineQuantizeOpType);
  EXPECT_EQ(Tensors(steps[1].inputs), (std::vector<int>{0, 1, 3}));

  steps = MakeSteps(MakeStep(kScaleOpType, {0, 1}, 2), MakeStep(kQuantizeOpType, {2}, 3));
  FuseBatchNorms({3}, &steps);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(Tensors(steps[0].inputs), (std::vector<int>{0, 1, kOptionalTensor}));
}

TEST(Fuse, NoBatchNormThatIsReadElsewhere) {
  for (const int read : {2, 4}) {
    std::vector<Step> steps = MakeSteps(MakeStep(kScaleOpType, {0, 1}, 2), MakeStep(kShiftOpType, {2, 3}, 4));
    steps.push_back(MakeStep(kQuantizeOpType, {4}, 5));
    FuseBatchNorms({read, 5}, &steps);
    EXPECT_EQ(steps.size(), read == 2 ? 2u : 3u);
  }
  std::vector<Step> steps = MakeSteps(MakeStep(kShiftOpType, {0, 1}, 2), MakeStep(kQuantizeOpType, {2}, 3));
  steps.push_back(MakeStep(kQuantizeOpType, {2}, 4));
  FuseBatchNorms({3, 4}, &steps);
  EXPECT_EQ(steps.size(), 3u);
}

TEST(Fuse, AnAverageIntoThePackingOfSigns) {
  for (const bool averages_first : {false, true}) {
    std::vector<Step> steps = MakeSteps(MakeStep(kScaleOpType, {0, 1}, 2), MakeStep(kShiftOpType, {2, 3}, 4));
    steps.push_back(MakeStep(kQuantizeOpType, {4}, 5));
    steps.push_back(MakeStep(kFloatAverageOpType, {4}, 6, &kPool));
    if (averages_first) std::swap(steps[2], steps[3]);
    // A convolution between the two must stay after the step that packs its signs.
    steps.insert(steps.begin() + 3, MakeStep(kBconv2dOpType, {averages_first ? 8 : 5, 7}, 9));
    FuseAverages(&steps);
    ASSERT_EQ(steps.size(), 4u);
    EXPECT_EQ(steps[2].type, &kAverageQuantizeOpType);
    EXPECT_EQ(Tensors(steps[2].inputs), (std::vector<int>{4}));
    EXPECT_EQ(Tensors(steps[2].outputs), (std::vector<int>{5, 6}));
    EXPECT_EQ(steps[2].builtin_data, &kPool);
    FuseBatchNorms({5, 6}, &steps);
    ASSERT_EQ(steps.size(), 2u);
    EXPECT_EQ(steps[0].type, &kAverageQuantizeOpType);
    EXPECT_EQ(Tensors(steps[0].inputs), (std::vector<int>{0, 1, 3}));
    EXPECT_EQ(steps[1].type, &kBconv2dOpType);
  }
}

TEST(Fuse, AnAverageOnlyWithSignsOfItsImage) {
  std::vector<Step> steps = MakeSteps(MakeStep(kQuantizeOpType, {0}, 1), MakeStep(kFloatAverageOpType, {2}, 3, &kPool));
  FuseAverages(&steps);
  EXPECT_EQ(steps.size(), 2u);
  // If an image has two packings and two averages, the first pair is joined.
  steps = MakeSteps(MakeStep(kQuantizeOpType, {0}, 1), MakeStep(kQuantizeOpType, {0}, 2));
  steps.push_back(MakeStep(kFloatAverageOpType, {0}, 3, &kPool));
  steps.push_back(MakeStep(kFloatAverageOpType, {0}, 4, &kPool));
  FuseAverages(&steps);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(Tensors(steps[0].outputs), (std::vector<int>{1, 3}));
  EXPECT_EQ(Tensors(steps[1].outputs), (std::vector<int>{2}));
  EXPECT_EQ(Tensors(steps[2].outputs), (std::vector<int>{4}));
}

// Returns a step of type `type` for each of the tensors 0, 10 and 20. The step applies a batch norm and packs the signs
// of the result. After these steps, a CONCATENATION joins the packed signs.
std::vector<Step> MakePackingSteps(const OpType& type = kAffineQuantizeOpType) {
  std::vector<Step> steps;
  for (const int image : {0, 10, 20}) {
    // The step that reads tensor 10 has no addend, to test that the addend of a batch norm is optional.
    const int addend = image == 10 ? kOptionalTensor : image + 2;
    steps.push_back(MakeStep(type, {image, image + 1, addend}, image + 3));
    steps.back().fused_outputs = {image + 4, image + 5};
  }
  steps.push_back(MakeStep(kConcatenationOpType, {3, 13, 23}, 4));
  return steps;
}

TEST(Fuse, PackingsOfWhatIsPutSideBySide) {
  for (const OpType* type : {&kAffineQuantizeOpType, &kInt8NormQuantizeOpType}) {
    std::vector<Step> steps = MakePackingSteps(*type);
    FusePackings({4}, &steps);
    ASSERT_EQ(steps.size(), 1u);
    EXPECT_EQ(steps[0].type, type);
    EXPECT_EQ(Tensors(steps[0].inputs), (std::vector<int>{0, 1, 2, 10, 11, kOptionalTensor, 20, 21, 22}));
    EXPECT_EQ(Tensors(steps[0].outputs), (std::vector<int>{4}));
    EXPECT_EQ(steps[0].fused_outputs, (std::vector<int>{4, 5, 14, 15, 24, 25}));
  }
}

TEST(Fuse, NoPackingsOfFloatsAndInt8Together) {
  for (const size_t other : {0u, 1u, 2u}) {
    std::vector<Step> steps = MakePackingSteps();
    steps[other].type = &kInt8NormQuantizeOpType;
    FusePackings({4}, &steps);
    EXPECT_EQ(steps.size(), 4u) << other;
  }
}

TEST(Fuse, PackingsOfWhatIsPutSideBySideTwice) {
  std::vector<Step> steps = MakePackingSteps();
  steps.push_back(MakeStep(kAffineQuantizeOpType, {30, 31, 32}, 33));
  steps.push_back(MakeStep(kConcatenationOpType, {33, 4}, 5));
  FusePackings({5}, &steps);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(Tensors(steps[0].inputs), (std::vector<int>{30, 31, 32, 0, 1, 2, 10, 11, kOptionalTensor, 20, 21, 22}));
  EXPECT_EQ(Tensors(steps[0].outputs), (std::vector<int>{5}));
}

TEST(Fuse, NoMorePackingsThanAStepMayHave) {
  // Each CONCATENATION joins the output of the previous CONCATENATION with the output of one packing.
  std::vector<Step> steps;
  int whole = 0;
  steps.push_back(MakeStep(kAffineQuantizeOpType, {1, 2, 3}, whole));
  for (int i = 1; i < 3 * static_cast<int>(kMaxSlices); ++i) {
    const int packed = 4 * i, next = packed + 1;
    steps.push_back(MakeStep(kAffineQuantizeOpType, {1, 2, 3}, packed));
    steps.push_back(MakeStep(kConcatenationOpType, {packed, whole}, next));
    whole = next;
  }
  FusePackings({whole}, &steps);
  for (const Step& step : steps) EXPECT_LE(step.inputs.size(), step.type->max_inputs);
  EXPECT_EQ(steps[0].inputs.size(), kAffineQuantizeOpType.max_inputs);
}

TEST(Fuse, NoPackingsOfWhichOneIsReadElsewhereOrHasNoBatchNorm) {
  for (const int read : {3, 13, 23}) {
    std::vector<Step> steps = MakePackingSteps();
    FusePackings({read, 4}, &steps);
    EXPECT_EQ(steps.size(), 4u) << read;
  }
  std::vector<Step> steps = MakePackingSteps();
  steps[3].inputs[2].tensor = 3;
  FusePackings({4}, &steps);
  EXPECT_EQ(steps.size(), 4u);
  steps = MakePackingSteps();
  steps[2] = MakeStep(kQuantizeOpType, {20}, 23);
  FusePackings({4}, &steps);
  EXPECT_EQ(steps.size(), 4u);
}

// Makes the steps of a CONCATENATION of tensors 0 and 1, a MUL by tensor 3, a MAX_POOL_2D, and an ADD of tensor 6. Each
// step is optional.
std::vector<Step> MakeImageSteps(bool joins, bool multiplies, bool pools, const OpType* addition) {
  std::vector<Step> steps;
  int tensor = 0;
  const auto push = [&](const OpType& type, const std::vector<int>& others, int output, const void* builtin_data) {
    std::vector<int> inputs = others;
    inputs.insert(inputs.begin(), tensor);
    steps.push_back(MakeStep(type, inputs, output, builtin_data));
    tensor = output;
  };
  if (joins) push(kConcatenationOpType, {1}, 2, nullptr);
  if (multiplies) push(kScaleOpType, {3}, 4, nullptr);
  if (pools) push(kMaxPool2dOpType, {}, 5, &kPool);
  if (addition != nullptr) push(*addition, {6}, 7, &kRelu);
  return steps;
}

TEST(Fuse, EveryChainOfAnImage) {
  for (unsigned which = 0; which < 24; ++which) {
    const bool joins = which % 2 == 1, multiplies = which / 2 % 2 == 1, pools = which / 4 % 2 == 1;
    const OpType* const additions[] = {nullptr, &kShiftOpType, &kRectifiedShiftOpType};
    const OpType* const addition = additions[which / 8];
    std::vector<Step> steps = MakeImageSteps(joins, multiplies, pools, addition);
    const size_t count = steps.size();
    const int last = count == 0 ? 0 : steps.back().outputs[0].tensor;
    FuseImages({last}, &steps);
    if (count < 2) {
      EXPECT_EQ(steps.size(), count);
      continue;
    }
    ASSERT_EQ(steps.size(), 1u) << which;
    const OpType& pool = addition == &kRectifiedShiftOpType ? kRectifiedMaxPool2dOpType : kAffineMaxPool2dOpType;
    EXPECT_EQ(steps[0].type, pools ? &pool : &kAffineOpType) << which;
    std::vector<int> inputs = joins ? std::vector<int>{0, 1} : std::vector<int>{0};
    inputs.push_back(multiplies ? 3 : kOptionalTensor);
    inputs.push_back(addition != nullptr ? 6 : kOptionalTensor);
    EXPECT_EQ(Tensors(steps[0].inputs), inputs) << which;
    EXPECT_EQ(Tensors(steps[0].outputs), (std::vector<int>{last})) << which;
    // The fused step has the options of the pool if there is one, otherwise the options of the addition.
    const void* const options = addition != nullptr ? static_cast<const void*>(&kRelu) : nullptr;
    EXPECT_EQ(steps[0].builtin_data, pools ? &kPool : options) << which;
  }
}

TEST(Fuse, Int8NormsIntoTheSigns) {
  for (unsigned which = 0; which < 4; ++which) {
    const bool multiplies = which % 2 == 1, adds = which / 2 == 1;
    std::vector<Step> steps;
    int tensor = 0;
    if (multiplies) steps.push_back(MakeStep(kInt8ScaleOpType, {tensor, 1}, 2));
    if (multiplies) tensor = 2;
    if (adds) steps.push_back(MakeStep(kInt8ShiftOpType, {tensor, 3}, 4));
    if (adds) tensor = 4;
    steps.push_back(MakeStep(kQuantizeOpType, {tensor}, 5));
    FuseBatchNorms({5}, &steps);
    ASSERT_EQ(steps.size(), 1u) << which;
    if (which == 0) continue;
    EXPECT_EQ(steps[0].type, &kInt8NormQuantizeOpType);
    EXPECT_EQ(Tensors(steps[0].inputs),
              (std::vector<int>{0, multiplies ? 1 : kOptionalTensor, adds ? 3 : kOptionalTensor}));
    EXPECT_EQ(steps[0].fused_outputs, (std::vector<int>{multiplies ? 2 : kOptionalTensor, adds ? 4 : kOptionalTensor}));
  }
  // The runtime also reads tensor 4, the sum, so the ADD cannot be fused with the packing of its signs.
  std::vector<Step> steps = MakeSteps(MakeStep(kInt8ShiftOpType, {0, 3}, 4), MakeStep(kQuantizeOpType, {4}, 5));
  FuseBatchNorms({4, 5}, &steps);
  EXPECT_EQ(steps.size(), 2u);
}

TEST(Fuse, NoImageThatIsReadElsewhere) {
  for (const int read : {2, 4, 5}) {
    std::vector<Step> steps = MakeImageSteps(true, true, true, &kShiftOpType);
    FuseImages({read, 7}, &steps);
    ASSERT_EQ(steps.size(), 2u) << read;
    EXPECT_EQ(Tensors(steps[0].outputs), (std::vector<int>{read}));
  }
}

TEST(Fuse, NoImageInAnotherOrder) {
  // The steps of an ADD before a MUL, and of a MUL after a max pool, are not fused.
  std::vector<Step> steps =
      MakeSteps(MakeStep(kShiftOpType, {0, 1}, 2, &kRelu), MakeStep(kScaleOpType, {2, 3}, 4, &kRelu));
  FuseImages({4}, &steps);
  EXPECT_EQ(steps.size(), 2u);
  steps = MakeSteps(MakeStep(kMaxPool2dOpType, {0}, 1, &kPool), MakeStep(kScaleOpType, {1, 2}, 3, &kRelu));
  FuseImages({3}, &steps);
  EXPECT_EQ(steps.size(), 2u);
}

// Makes the steps of a MUL of tensors 0 and 1, a PRELU with the slopes in tensor 3, and an ADD of tensor 5. Each step
// is optional.
std::vector<Step> MakeGateSteps(const OpType* gate, bool leaks, bool adds, bool addend_first) {
  std::vector<Step> steps;
  if (gate != nullptr) steps.push_back(MakeStep(*gate, {0, 1}, 2));
  int tensor = gate == nullptr ? 0 : 2;
  if (leaks) steps.push_back(MakeStep(kPReluOpType, {tensor, 3}, 4));
  if (leaks) tensor = 4;
  const std::vector<int> addends = addend_first ? std::vector<int>{5, tensor} : std::vector<int>{tensor, 5};
  if (adds) steps.push_back(MakeStep(kAddOpType, addends, 6, &kRelu));
  return steps;
}

TEST(Fuse, EveryChainOfAGate) {
  for (unsigned which = 0; which < 24; ++which) {
    const bool leaks = which % 2 == 1, adds = which / 2 % 2 == 1, addend_first = which / 4 % 2 == 1;
    const OpType* const gates[] = {nullptr, &kGateOpType, &kRectifiedGateOpType};
    const OpType* const gate = gates[which / 8];
    std::vector<Step> steps = MakeGateSteps(gate, leaks, adds, addend_first);
    const size_t count = steps.size();
    const int last = count == 0 ? 0 : steps.back().outputs[0].tensor;
    // A PRELU is not fused with a RELU before it.
    const bool is_apart = gate == &kRectifiedGateOpType && leaks;
    FuseGates({last}, &steps);
    ASSERT_EQ(steps.size(), is_apart ? count - adds : count < 2 ? count : 1) << which;
    if (count < 2 || (is_apart && !adds)) continue;
    const bool rectifies = gate == &kRectifiedGateOpType && !leaks;
    EXPECT_EQ(steps.back().type, rectifies ? &kRectifiedGatedSumOpType : &kGatedSumOpType) << which;
    std::vector<int> inputs =
        gate == nullptr || is_apart ? std::vector<int>{is_apart ? 2 : 0, kOptionalTensor} : std::vector<int>{0, 1};
    inputs.push_back(leaks ? 3 : kOptionalTensor);
    inputs.push_back(adds ? 5 : kOptionalTensor);
    EXPECT_EQ(Tensors(steps.back().inputs), inputs) << which;
    EXPECT_EQ(Tensors(steps.back().outputs), (std::vector<int>{last})) << which;
    EXPECT_EQ(steps.back().builtin_data, adds ? &kRelu : nullptr) << which;
  }
}

TEST(Fuse, OneOfTwoGatesThatAreAdded) {
  std::vector<Step> steps = MakeSteps(MakeStep(kGateOpType, {0, 1}, 2), MakeStep(kGateOpType, {3, 4}, 5));
  steps.push_back(MakeStep(kAddOpType, {2, 5}, 6, &kRelu));
  FuseGates({6}, &steps);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].type, &kGateOpType);
  EXPECT_EQ(Tensors(steps[1].inputs), (std::vector<int>{0, 1, kOptionalTensor, 5}));
}

TEST(Fuse, NoGateThatIsReadElsewhere) {
  for (const int read : {2, 4}) {
    std::vector<Step> steps = MakeGateSteps(&kGateOpType, true, true, false);
    FuseGates({read, 6}, &steps);
    ASSERT_EQ(steps.size(), 2u) << read;
    EXPECT_EQ(Tensors(steps[0].outputs), (std::vector<int>{read}));
  }
  std::vector<Step> steps = MakeSteps(MakeStep(kGateOpType, {0, 1}, 2), MakeStep(kAddOpType, {2, 2}, 3, &kRelu));
  FuseGates({3}, &steps);
  EXPECT_EQ(steps.size(), 2u);
}

}  // namespace
}  // namespace litebnn
