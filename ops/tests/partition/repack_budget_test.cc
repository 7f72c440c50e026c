#include "tflite/partition/repack_budget.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <string>

namespace litebnn {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

std::string reported;

void Report(TfLiteContext*, const char* message, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, message);
  std::vsnprintf(text, sizeof(text), message, arguments);
  va_end(arguments);
  reported = text;
}

// A context of three tensors: two constants, the second of which also a third tensor's data.
struct Case {
  char data[2] = {};
  std::array<TfLiteTensor, 3> tensors = {};
  TfLiteContext context = {};
  struct {
    TfLiteIntArray array;
    int more[3];
  } inputs = {{4, {0}}, {-1, 1, 2}};
  TfLiteNode node = {};

  explicit Case(size_t first_bytes, size_t second_bytes) {
    reported.clear();
    const size_t bytes[] = {first_bytes, second_bytes, second_bytes};
    for (size_t i = 0; i < tensors.size(); ++i) {
      tensors[i].data = &data[i == 0 ? 0 : 1];
      tensors[i].bytes = bytes[i];
      tensors[i].allocation_type = kTfLiteMmapRo;
    }
    context.tensors = tensors.data();
    context.tensors_size = tensors.size();
    context.ReportError = Report;
    node.inputs = &inputs.array;
  }

  // How many nodes may repack all of the constants.
  int CountNodes() {
    RepackBudget budget(context);
    int count = 0;
    while (budget.Take(&context, node)) ++count;
    return count;
  }
};

TEST(RepackBudget, SmallConstantsMayBeSharedUpTo16MiB) {
  // What a node takes is the sum of its inputs, what the model has is the sum of its data.
  Case small(1000, 24);
  EXPECT_EQ(small.CountNodes(), (16 * kMiB + 16 * 1024) / (1000 + 24 + 24));
  EXPECT_EQ(reported.rfind("litebnn: tensor ", 0), 0u) << reported;
}

TEST(RepackBudget, LargeConstantsMayBeSharedSixteenTimes) {
  Case large(256 * kMiB, 0);
  EXPECT_EQ(large.CountNodes(), 16);
  // The last may take all that is left.
  EXPECT_EQ(Case(16 * kMiB, 0).CountNodes(), 17);
  EXPECT_EQ(reported, "litebnn: tensor 0 '': expected constants that nodes share at most 16 times, found more. ");
}

TEST(RepackBudget, OnlyConstantsCount) {
  Case computed(256 * kMiB, 256 * kMiB);
  for (TfLiteTensor& tensor : computed.tensors) tensor.allocation_type = kTfLiteArenaRw;
  RepackBudget budget(computed.context);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(budget.Take(&computed.context, computed.node));
  EXPECT_EQ(reported, "");
  // Nor may a model repack more for what it computes.
  Case mixed(256 * kMiB, 24);
  mixed.tensors[0].allocation_type = kTfLiteArenaRw;
  EXPECT_EQ(mixed.CountNodes(), (16 * kMiB + 16 * 24) / (24 + 24));
}

TEST(RepackBudget, TensorsThatAreNotThereAreLeftToOthers) {
  Case wrong(1, 1);
  wrong.inputs.more[0] = 3;
  wrong.inputs.more[1] = 1000000;
  RepackBudget budget(wrong.context);
  EXPECT_TRUE(budget.Take(&wrong.context, wrong.node));
}

}  // namespace
}  // namespace litebnn
