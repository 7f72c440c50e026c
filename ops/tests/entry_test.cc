// Tests of the library's entry points: the delegate, its options, and the registrations of the custom ops.
#include <gtest/gtest.h>

#include <cstdlib>

#include "kernels/kernels.h"
#include "litebnn/register_ops.h"
#include "tests/support/refusals.h"
#include "tflite/ops/op_list.h"

namespace litebnn::testing {
namespace {

TEST(Delegate, MessageNamesTheNodeInItsPartition) {
  Graph graph = ChainGraph(2);
  graph.nodes[2].options = EncodeOptions({});
  EXPECT_NE(ErrorsOfDelegate(graph).find("litebnn: LceBconv2d, node 2: option channels_in"), std::string::npos);
}

TEST(Delegate, RefusesAWrongOrderOfNodes) {
  Graph graph = ChainGraph(1);
  std::swap(graph.nodes[1], graph.nodes[3]);
  EXPECT_NE(ErrorsOfDelegate(graph).find("expected a node before this one to write it"), std::string::npos)
      << ErrorsOfDelegate(graph);
}

TEST(Delegate, RefusesANodeThatItHasNotClaimed) {
  Graph graph = ChainGraph(2);
  graph.nodes[1].op = "LceOther";
  graph.nodes[1].unclaimed = true;
  const std::string errors = ErrorsOfDelegate(graph);
  EXPECT_NE(errors.find("litebnn: LceOther, node 1: expected an op that the delegate has claimed"), std::string::npos)
      << errors;
}

TEST(Plugin, PrintsTheErrorOfALoaderThatTakesNone) {
  // TfLiteExternalDelegateCreate, and loaders that use it, pass no error callback, so the library must accept null.
  const char *key = "threads", *value = "2";
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(tflite_plugin_create_delegate(&key, &value, 1, nullptr), nullptr);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "litebnn: unknown option 'threads': expected one of num_threads, isa, verbose, describe\n");
}

std::vector<std::string> CustomOpNames() {
  std::vector<std::string> names;
  for (const OpType* type : kOpTypes) {
    if (type->IsCustom()) names.emplace_back(type->name);
  }
  return names;
}

TEST(Registrations, AreAll) {
  size_t count = 0;
  const LitebnnOp* ops = litebnn_ops(&count);
  ASSERT_EQ(count, CustomOpNames().size());
  for (size_t i = 0; i < count; ++i) EXPECT_EQ(litebnn_registration(ops[i].name), ops[i].registration);
  EXPECT_EQ(litebnn_registration("LceOther"), nullptr);
  EXPECT_EQ(litebnn_registration(nullptr), nullptr);
  EXPECT_EQ(litebnn_ops(nullptr), ops);
  EXPECT_STRNE(litebnn_version(), "");
}

struct FakeResolver {
  std::vector<std::string> names;
  void AddCustom(const char* name, const ::TfLiteRegistration* registration, int = 1) {
    EXPECT_NE(registration, nullptr);
    names.emplace_back(name);
  }
};

TEST(Registrations, GoIntoAResolver) {
  FakeResolver resolver;
  RegisterOps(resolver);
  EXPECT_EQ(resolver.names, CustomOpNames());
}

std::string plugin_error;

std::string PluginError(const char* key, const char* value) {
  plugin_error.clear();
  EXPECT_EQ(tflite_plugin_create_delegate(&key, &value, 1, [](const char* message) { plugin_error = message; }),
            nullptr);
  return plugin_error;
}

TEST(Plugin, RefusesOptions) {
  EXPECT_EQ(PluginError("threads", "2"),
            "litebnn: unknown option 'threads': expected one of num_threads, isa, verbose, describe");
  for (const char* value : {"0", "-1", "257", "", "two", "2x", "99999999999999999999"}) {
    EXPECT_EQ(PluginError("num_threads", value),
              std::string("litebnn: option num_threads: expected an integer from 1 to 256, found '") + value + "'");
  }
  EXPECT_EQ(PluginError("verbose", "yes"), "litebnn: option verbose: expected 0 or 1, found 'yes'");
  EXPECT_EQ(PluginError("isa", "sparc"),
            std::string("litebnn: option isa: expected one of ") + AvailableIsas() + ", found 'sparc'");
  EXPECT_EQ(PluginError(nullptr, "1"), "litebnn: option: expected a key and a value, found none");
  tflite_plugin_destroy_delegate(nullptr);
}

TEST(Plugin, TakesOptions) {
  EXPECT_NE(MakeDelegate({{"num_threads", "2"}, {"isa", "portable"}, {"verbose", "0"}}), nullptr);
}

TEST(Isa, UnknownInTheEnvironmentIsRefused) {
  const char* const before = std::getenv("LITEBNN_ISA");
  const std::string kept = before == nullptr ? "" : before;
  setenv("LITEBNN_ISA", "sparc", 1);
  const std::string expected =
      std::string("environment variable LITEBNN_ISA: expected one of ") + AvailableIsas() + ", found 'sparc'";
  EXPECT_EQ(PluginError("num_threads", "1"), "litebnn: " + expected);
  EXPECT_NE(ErrorsAsCustomOps(ConvGraph({})).find("litebnn: LceBconv2d: " + expected), std::string::npos);
  // The delegate's option `isa` takes precedence over the environment variable.
  EXPECT_NE(MakeDelegate({{"isa", "portable"}}), nullptr);
  setenv("LITEBNN_ISA", kept.c_str(), 1);
}

}  // namespace
}  // namespace litebnn::testing
