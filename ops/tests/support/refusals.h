// The errors that a runtime gets when the ops refuse a graph.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/support/delegates.h"
#include "tests/support/graphs.h"

namespace litebnn::testing {

inline std::string ErrorsAsCustomOps(const Graph& graph) {
  FakeRuntime runtime(graph);
  EXPECT_FALSE(runtime.Allocate());
  return runtime.errors();
}

inline std::string ErrorsOfDelegate(const Graph& graph) {
  const DelegatePointer delegate = MakeDelegate();
  FakeRuntime runtime(graph, delegate.get(), 100);
  EXPECT_FALSE(runtime.Allocate());
  return runtime.errors();
}

}  // namespace litebnn::testing
