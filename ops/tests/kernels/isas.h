// Runs a test once for every ISA that this CPU has.
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "kernels/kernels.h"

namespace litebnn {

inline std::vector<std::string> IsaNames() {
  std::vector<std::string> names;
  std::istringstream list(AvailableIsas());
  for (std::string name; std::getline(list, name, ',');) names.push_back(name.substr(name.find_first_not_of(' ')));
  return names;
}

class IsaTest : public testing::TestWithParam<std::string> {
 protected:
  const Isa& isa() const { return *FindIsa(GetParam().c_str()); }
};

#define LITEBNN_TEST_EVERY_ISA(Suite) \
  INSTANTIATE_TEST_SUITE_P(Isas, Suite, testing::ValuesIn(IsaNames()), [](const auto& name) { return name.param; })

}  // namespace litebnn
