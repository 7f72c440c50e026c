// The names of this CPU's ISAs, for test parameters.
#pragma once

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

}  // namespace litebnn
