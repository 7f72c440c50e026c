// How long each op of a model takes, and how that is printed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace litebnn::examples {

// The time spent in one node of the graph as it is executed.
struct OpTime {
  int node;            // its index in the graph; a delegate's nodes come after the model's
  std::string op;      // such as "LceBconv2d", "CONV_2D" or "TfLiteXNNPackDelegate"
  std::string output;  // name of its first output tensor; empty where the runtime does not tell
  int64_t calls;
  double milliseconds;  // of all calls together
};

// A table with a line for each node, and one for each kind of op.
std::string FormatOpTimes(const std::vector<OpTime>& times);

}  // namespace litebnn::examples
