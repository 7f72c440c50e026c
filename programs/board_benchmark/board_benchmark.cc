// Runs all models in the folder `board_models`, which lies in the program's folder. Writes the results as JSON and as a
// page for sharing. The models are golden models with known outputs, single layers, and whole networks with random
// weights.
#include <dirent.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "common/error.h"
#include "common/files.h"
#include "common/flags.h"
#include "common/json.h"
#include "common/session.h"
#include "common/times.h"
#include "litebnn/litebnn.h"

namespace litebnn::programs {
namespace {

constexpr size_t kLargestTensor = size_t{1} << 30;
// The largest allowed difference between a golden model's output and its expected output, relative to the largest
// value.
constexpr double kTolerance = 1e-4;
const char* const kModelEnding = ".tflite";
const char* const kKinds[] = {"golden", "layer", "network"};

struct Settings {
  std::string output = "board-benchmark.json";
  int num_threads = 1;
  int num_runs = 50;
  int warmup_runs = 3;
};

struct Outcome {
  std::string name;
  double median_ms;
  double min_ms;
  uint64_t hash;
  double difference;  // of a golden output, relative to the largest value; 0 for other models
  bool IsRight() const { return difference <= kTolerance; }
};

using State = std::vector<std::pair<std::string, std::string>>;

// Computes the FNV-1a hash of an output, so that users can compare the outputs of different boards.
uint64_t Hash(uint64_t hash, const void* data, size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  for (size_t i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
  return hash;
}

// The folder that contains this program. Unlike realpath, readlink also works after the program's file is replaced.
std::string Home() {
  char program[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", program, sizeof program);
  if (size <= 0) throw Error("cannot read /proc/self/exe");
  const std::string path(program, static_cast<size_t>(size));
  return path.substr(0, path.rfind('/'));
}

// Quotes a text, so that a shell reads it as one word.
std::string Quote(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// Reads the board's state, which the script board_state.sh prints.
State ReadState() {
  const std::string command = "sh " + Quote(Home() + "/board_state.sh");
  State state;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw Error("cannot run " + command);
  char line[1024];
  while (std::fgets(line, sizeof line, pipe) != nullptr) {
    const std::string text(line, std::strcspn(line, "\n"));
    const size_t equals = text.find('=');
    if (equals != std::string::npos) state.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  if (pclose(pipe) != 0) throw Error("cannot run " + command);
  return state;
}

// Returns the largest difference of a golden model's outputs from the expected outputs, relative to the largest value.
double Difference(Session& session, const std::string& wanted) {
  std::string found;
  for (size_t i = 0; i < session.outputs().size(); ++i) {
    found.append(static_cast<const char*>(session.OutputData(i)), session.OutputSize(i));
  }
  if (found.size() != wanted.size()) return HUGE_VAL;
  double largest = 1e-30, difference = 0;
  for (size_t at = 0; at + sizeof(float) <= wanted.size(); at += sizeof(float)) {
    float expected, actual;
    std::memcpy(&expected, &wanted[at], sizeof expected);
    std::memcpy(&actual, &found[at], sizeof actual);
    largest = std::max(largest, std::fabs(static_cast<double>(expected)));
    const double apart = std::fabs(static_cast<double>(actual) - static_cast<double>(expected));
    difference = std::isnan(apart) ? HUGE_VAL : std::max(difference, apart);
  }
  return difference / largest;
}

// Runs the model `name` of a folder.
Outcome Run(const Settings& settings, const std::string& folder, const std::string& name) {
  const std::string path = folder + "/" + name, input = path + ".in";
  SessionOptions options;
  options.model = path + kModelEnding;
  options.num_threads = settings.num_threads;
  options.lcompute = options.xnnpack = true;
  const std::unique_ptr<Session> session = LoadSession(options);
  const bool is_golden = access(input.c_str(), F_OK) == 0;
  for (size_t i = 0; i < session->inputs().size(); ++i) {
    const size_t size = session->InputSize(i);
    const std::string given = is_golden ? ReadFile(input, "input", kLargestTensor) : "";
    if (is_golden && (i > 0 || given.size() != size)) throw Error(input + " is not what the model takes");
    uint32_t random = kRandomSeed;
    session->FillInput(i, is_golden ? given.data() : RandomInput(session->inputs()[i].type, size, random).data());
  }
  for (int i = 0; i < std::max(1, settings.warmup_runs); ++i) session->Invoke();
  Outcome outcome = {name, 0, 0, 0xcbf29ce484222325, 0};
  for (size_t i = 0; i < session->outputs().size(); ++i) {
    outcome.hash = Hash(outcome.hash, session->OutputData(i), session->OutputSize(i));
  }
  if (is_golden) outcome.difference = Difference(*session, ReadFile(path + ".out", "output", kLargestTensor));
  std::vector<double> run_ms;
  for (int i = 0; i < settings.num_runs; ++i) run_ms.push_back(session->Invoke());
  outcome.median_ms = Percentile(run_ms, 50);
  outcome.min_ms = Summarize(run_ms).minimum;
  return outcome;
}

std::vector<Outcome> RunAll(const Settings& settings, const std::string& kind) {
  const std::string folder = Home() + "/board_models/" + kind, ending = kModelEnding;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(opendir(folder.c_str()), closedir);
  if (listing == nullptr) throw Error("there is no folder " + folder);
  std::vector<std::string> files;
  while (const dirent* entry = readdir(listing.get())) {
    const std::string file = entry->d_name;
    if (file.size() > ending.size() && file.rfind(ending) == file.size() - ending.size()) files.push_back(file);
  }
  std::sort(files.begin(), files.end());
  std::vector<Outcome> outcomes;
  for (const std::string& file : files) {
    const std::string name = file.substr(0, file.size() - ending.size());
    std::fprintf(stderr, "%s %s\n", kind.c_str(), name.c_str());
    outcomes.push_back(Run(settings, folder, name));
  }
  return outcomes;
}

Json ToJson(const State& state) {
  std::vector<std::pair<std::string, Json>> members;
  for (const auto& [name, value] : state) members.emplace_back(name, value);
  return Json::Object(members);
}

Json ToJson(const std::vector<Outcome>& outcomes, bool is_golden) {
  std::vector<Json> rows;
  for (const Outcome& one : outcomes) {
    std::vector<std::pair<std::string, Json>> row = {
        {"name", one.name},
        {"median_ms", one.median_ms},
        {"min_ms", one.min_ms},
        {"output_hash", Format("%016llx", static_cast<unsigned long long>(one.hash))}};
    if (is_golden) {
      row.emplace_back("difference", one.difference);
      row.emplace_back("is_right", one.IsRight());
    }
    rows.push_back(Json::Object(row));
  }
  return Json::Array(rows);
}

std::string Page(const Settings& settings, const State& before, const State& after,
                 const std::map<std::string, std::vector<Outcome>>& outcomes) {
  std::string page = "# litebnn on a board\n\n| | before | after |\n|---|---|---|\n";
  for (size_t i = 0; i < before.size() && i < after.size(); ++i) {
    page += "| " + before[i].first + " | " + before[i].second + " | " + after[i].second + " |\n";
  }
  page += Format("\n%s, litebnn %s, %d threads, %d runs each.\n", RuntimeName().c_str(), litebnn_version(),
                 settings.num_threads, settings.num_runs);
  for (const char* kind : kKinds) {
    page += Format("\n| %s | median, ms | best, ms | output | |\n|---|---|---|---|---|\n", kind);
    for (const Outcome& one : outcomes.at(kind)) {
      const char* verdict = std::strcmp(kind, "golden") != 0 ? "" : one.IsRight() ? "right" : "WRONG";
      page += Format("| %s | %.3f | %.3f | %016llx | %s |\n", one.name.c_str(), one.median_ms, one.min_ms,
                     static_cast<unsigned long long>(one.hash), verdict);
    }
  }
  return page;
}

void Write(const std::string& path, const std::string& content) {
  if (!WriteFile(path, content)) throw Error("cannot write " + path);
}

void Main(int argc, char** argv) {
  Settings settings;
  const std::vector<Flag> flags = {
      {"output", 0, &settings.output, "file to write the results to, as JSON; the page is beside it, as .md"},
      {"num_threads", 0, IntFlag{&settings.num_threads, 1, kMostThreads}, "number of threads"},
      {"num_runs", 0, IntFlag{&settings.num_runs, 1}, "number of measured runs of each model"},
      {"warmup_runs", 0, IntFlag{&settings.warmup_runs, 0}, "number of runs before the measured ones"},
  };
  if (!ParseFlags(argc, argv, flags)) return;
  const std::string& output = settings.output;
  // A dot that begins the file's name does not begin an ending, as in `.results`.
  const size_t dot = output.find_last_of("./");
  const bool has_ending = dot != std::string::npos && dot > 0 && output[dot] == '.' && output[dot - 1] != '/';
  const std::string page = (has_ending ? output.substr(0, dot) : output) + ".md";
  if (page == output) throw Error("--output names the JSON file: expected another ending than .md");
  Write(output, "");  // an unwritable path is refused now instead of after minutes
  const State before = ReadState();
  std::map<std::string, std::vector<Outcome>> outcomes;
  for (const char* kind : kKinds) outcomes[kind] = RunAll(settings, kind);
  const State after = ReadState();
  Write(output, Json::Object({
                                 {"format", "litebnn board benchmark 1"},
                                 {"before", ToJson(before)},
                                 {"after", ToJson(after)},
                                 {"tflite_version", RuntimeName()},
                                 {"litebnn_version", litebnn_version()},
                                 {"num_threads", settings.num_threads},
                                 {"num_runs", settings.num_runs},
                                 {"golden", ToJson(outcomes["golden"], true)},
                                 {"layer", ToJson(outcomes["layer"], false)},
                                 {"network", ToJson(outcomes["network"], false)},
                             })
                        .text() +
                    "\n");
  Write(page, Page(settings, before, after, outcomes));
  const auto& golden = outcomes["golden"];
  const auto right = std::count_if(golden.begin(), golden.end(), [](const Outcome& one) { return one.IsRight(); });
  std::printf("%s and %s: %d of %zu golden models are right\n", output.c_str(), page.c_str(), static_cast<int>(right),
              golden.size());
  if (static_cast<size_t>(right) != golden.size()) throw Error("this board computes something else: see " + page);
}

}  // namespace
}  // namespace litebnn::programs

int main(int argc, char** argv) { return litebnn::programs::RunProgram(litebnn::programs::Main, argc, argv); }
