// Statistics of a model's times, the times of its ops, and their output as text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace litebnn::programs {

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

struct Statistics {
  double mean;
  double deviation;  // standard deviation of these values, not an estimate for a larger population
  double minimum;
  double maximum;
};

// Computes the statistics of `values`, which must not be empty.
Statistics Summarize(const std::vector<double>& values);

// Returns the value below which `percent` of the values lie, with linear interpolation.
double Percentile(std::vector<double> values, double percent);

}  // namespace litebnn::programs
