// GoogleTest parameters that run a test once for every ISA of this CPU.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "kernels/kernels.h"
#include "tests/support/isa_names.h"

namespace litebnn {

class IsaTest : public testing::TestWithParam<std::string> {
 protected:
  const Isa& isa() const { return *FindIsa(GetParam().c_str()); }
};

#define LITEBNN_TEST_EVERY_ISA(Suite) \
  INSTANTIATE_TEST_SUITE_P(Isas, Suite, testing::ValuesIn(IsaNames()), [](const auto& name) { return name.param; })

}  // namespace litebnn
