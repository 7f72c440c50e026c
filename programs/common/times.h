// The times of a model's ops, and their output as text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace litebnn::examples {

// The time that a model spends in one node of the executed graph.
struct OpTime {
  int node;            // index in the graph; delegates' nodes come after the model's
  std::string op;      // such as "LceBconv2d", "CONV_2D" or "TfLiteXNNPackDelegate"
  std::string output;  // name of the first output tensor; empty if the runtime does not tell
  int64_t calls;
  double milliseconds;  // all calls together
};

// Formats the times as two tables, one with a line per node and one with a line per kind of op.
std::string FormatOpTimes(const std::vector<OpTime>& times);

}  // namespace litebnn::examples
