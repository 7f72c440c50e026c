#include "common/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace litebnn::examples {

Statistics Summarize(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const auto [minimum, maximum] = std::minmax_element(values.begin(), values.end());
  return {mean, std::sqrt(squares / count), *minimum, *maximum};
}

double Percentile(std::vector<double> values, double percent) {
  std::sort(values.begin(), values.end());
  const double position = percent / 100 * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (values[above] - values[below]) * (position - static_cast<double>(below));
}

}  // namespace litebnn::examples
