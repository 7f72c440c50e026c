#include "common/flags.h"

#include <getopt.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "common/error.h"

namespace litebnn::programs {
namespace {

// Parses a flag's text and stores the value; returns false if the text is not valid for the flag.
struct Assign {
  const char* text;

  bool operator()(std::string* value) const {
    *value = text;
    return true;
  }

  bool operator()(bool* value) const {
    const std::string word = text;
    *value = word == "1" || word == "true";
    return *value || word == "0" || word == "false";
  }

  bool operator()(float* value) const {
    char* end = nullptr;
    *value = std::strtof(text, &end);
    return end != text && *end == '\0' && std::isfinite(*value);
  }

  bool operator()(IntFlag flag) const {
    char* end = nullptr;
    errno = 0;
    const long number = std::strtol(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || number < flag.minimum || number > flag.maximum) return false;
    *flag.value = static_cast<int>(number);
    return true;
  }
};

// Describes the type of a flag's value and its default, as text.
struct Describe {
  std::string operator()(const std::string* value) const {
    return value->empty() ? "text" : Format("text, default %s", value->c_str());
  }
  std::string operator()(const bool* value) const { return Format("0 or 1, default %d", *value ? 1 : 0); }
  std::string operator()(const float* value) const {
    return std::isnan(*value) ? "a number" : Format("a number, default %g", static_cast<double>(*value));
  }
  std::string operator()(IntFlag flag) const {
    const std::string to = flag.maximum < INT_MAX ? Format(" to %d", flag.maximum) : "";
    return Format("a whole number from %d%s, default %d", flag.minimum, to.c_str(), *flag.value);
  }
};

void PrintHelp(const char* program, const std::vector<Flag>& flags) {
  std::printf("usage: %s [flags]\n", program);
  for (const Flag& flag : flags) {
    const std::string letter = flag.letter ? Format(", -%c", flag.letter) : "";
    const std::string names = Format("--%s%s", flag.name, letter.c_str());
    std::printf("  %-28s %s (%s)\n", names.c_str(), flag.help, std::visit(Describe(), flag.value).c_str());
  }
  std::printf("  %-28s this text\n", "--help, -h");
}

}  // namespace

bool ParseFlags(int argc, char** argv, const std::vector<Flag>& flags) {
  constexpr int kHelp = 'h';
  constexpr int kFirstFlag = 256;  // above every letter
  std::vector<option> long_options;
  // The character '+' makes getopt stop at the first argument that is no flag. The character ':' makes getopt
  // distinguish missing values from unknown flags.
  std::string short_options = "+:h";
  for (const Flag& flag : flags) {
    long_options.push_back({flag.name, required_argument, nullptr, kFirstFlag + static_cast<int>(long_options.size())});
    if (flag.letter) short_options += {flag.letter, ':'};
  }
  long_options.push_back({"help", no_argument, nullptr, kHelp});
  long_options.push_back({});

  opterr = 0;
  for (;;) {
    const int last = optind;
    const int found = getopt_long(argc, argv, short_options.c_str(), long_options.data(), nullptr);
    if (found == -1) break;
    if (found == kHelp) {
      PrintHelp(argv[0], flags);
      return false;
    }
    if (found == ':') throw Error(Format("%s needs a value", argv[last]));
    if (found == '?') throw Error(Format("%s is not a flag of this program (see --help)", argv[last]));
    for (size_t i = 0; i < flags.size(); ++i) {
      const Flag& flag = flags[i];
      if (found != kFirstFlag + static_cast<int>(i) && found != flag.letter) continue;
      if (!std::visit(Assign{optarg}, flag.value)) {
        const std::string takes = std::visit(Describe(), flag.value);
        throw Error(Format("--%s=%s: expected %s", flag.name, optarg, takes.substr(0, takes.find(',')).c_str()));
      }
    }
  }
  if (optind < argc) throw Error(Format("unexpected argument '%s' (see --help)", argv[optind]));
  return true;
}

}  // namespace litebnn::programs
