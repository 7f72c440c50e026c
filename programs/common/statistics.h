#pragma once

#include <vector>

namespace litebnn::examples {

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

}  // namespace litebnn::examples
