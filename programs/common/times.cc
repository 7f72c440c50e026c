#include "common/op_times.h"

#include <algorithm>

#include "common/error.h"

namespace litebnn::examples {

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

}  // namespace litebnn::examples
