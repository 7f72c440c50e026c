#include "tflite/partition/repack_budget.h"

#include <gtest/gtest.h>

#include <array>

namespace litebnn {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

// A context with three tensors: two constants, and a third tensor that shares the data of the second.
struct Case {
  char data[2] = {};
  std::array<TfLiteTensor, 3> tensors = {};
  TfLiteContext context = {};

  Case(size_t first_bytes, size_t second_bytes) {
    const size_t bytes[] = {first_bytes, second_bytes, second_bytes};
    for (size_t i = 0; i < tensors.size(); ++i) {
      tensors[i].data = &data[i == 0 ? 0 : 1];
      tensors[i].bytes = bytes[i];
      tensors[i].allocation_type = kTfLiteMmapRo;
    }
    context.tensors = tensors.data();
    context.tensors_size = tensors.size();
  }

  // The number of nodes whose requests for memory are granted, if each node requests `bytes` bytes.
  int CountNodes(size_t bytes) {
    RepackBudget budget(context);
    int count = 0;
    while (budget.Take(bytes)) ++count;
    return count;
  }
};

TEST(RepackBudget, NodesOfAnyModelMayHold128MiB) {
  EXPECT_EQ(Case(0, 0).CountNodes(kMiB), 128);
  // A refused request does not reduce the budget.
  Case none(0, 0);
  RepackBudget budget(none.context);
  EXPECT_FALSE(budget.Take(128 * kMiB + 1));
  EXPECT_TRUE(budget.Take(128 * kMiB));
  EXPECT_FALSE(budget.Take(1));
  EXPECT_TRUE(budget.Take(0));
}

TEST(RepackBudget, EachByteOfConstantsGives128More) {
  EXPECT_EQ(Case(kMiB, 0).CountNodes(kMiB), 128 + 128);
  // Two tensors with the same data count once in the budget, with the size of the larger one.
  EXPECT_EQ(Case(kMiB, 2 * kMiB).CountNodes(kMiB), 128 + 3 * 128);
  Case larger(0, kMiB);
  larger.tensors[2].bytes = 3 * kMiB;
  EXPECT_EQ(larger.CountNodes(kMiB), 128 + 3 * 128);
}

TEST(RepackBudget, OnlyConstantsCount) {
  Case computed(256 * kMiB, kMiB);
  computed.tensors[0].allocation_type = kTfLiteArenaRw;
  EXPECT_EQ(computed.CountNodes(kMiB), 128 + 128);
  Case not_there(kMiB, 256 * kMiB);
  not_there.context.tensors_size = 1;
  EXPECT_EQ(not_there.CountNodes(kMiB), 128 + 128);
}

}  // namespace
}  // namespace litebnn
