#include "common/times.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/error.h"

namespace litebnn::programs {

std::string FormatOpTimes(const std::vector<OpTime>& times) {
  struct Kind {
    std::string op;
    int nodes;
    double milliseconds;  // per run
  };
  std::vector<Kind> kinds;
  double total = 0;
  const auto per_run = [](const OpTime& time) {
    return time.calls > 0 ? time.milliseconds / static_cast<double>(time.calls) : 0;
  };
  for (const OpTime& time : times) {
    auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const Kind& known) { return known.op == time.op; });
    if (kind == kinds.end()) kind = kinds.insert(kind, {time.op, 0, 0});
    ++kind->nodes;
    kind->milliseconds += per_run(time);
    total += per_run(time);
  }
  std::sort(kinds.begin(), kinds.end(), [](const Kind& a, const Kind& b) {
    return a.milliseconds > b.milliseconds || (a.milliseconds == b.milliseconds && a.op < b.op);
  });
  const auto share = [total](double milliseconds) { return total > 0 ? 100 * milliseconds / total : 0; };

  std::string text = Format("%5s %9s %6s  %-24s %s\n", "node", "ms", "%", "op", "output");
  for (const OpTime& time : times) {
    text += Format("%5d %9.3f %6.2f  %-24s %s\n", time.node, per_run(time), share(per_run(time)),
                   Printable(time.op).c_str(), Printable(time.output).c_str());
  }
  text += Format("\n%5s %9s %6s  %s\n", "nodes", "ms", "%", "op");
  for (const Kind& kind : kinds) {
    text += Format("%5d %9.3f %6.2f  %s\n", kind.nodes, kind.milliseconds, share(kind.milliseconds),
                   Printable(kind.op).c_str());
  }
  return text;
}

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

}  // namespace litebnn::programs
