// Command line flags, as `--name=value`, `--name value` or `-n value`.
#pragma once

#include <climits>
#include <string>
#include <variant>
#include <vector>

namespace litebnn::examples {

// An integer flag and its range.
struct IntFlag {
  int* value;
  int minimum;
  int maximum = INT_MAX;
};

// A flag: the destination of its value, which also holds its default, and its help text.
struct Flag {
  const char* name;
  char letter;  // short form; 0 for none
  std::variant<std::string*, bool*, float*, IntFlag> value;
  const char* help;
};

// Parses the command line into the flags' values. Booleans are 0, 1, true or false. Returns false, after printing the
// flags, if `--help` or `-h` was given. Throws Error for an unknown flag, an invalid value, or an argument that is no
// flag.
bool ParseFlags(int argc, char** argv, const std::vector<Flag>& flags);

}  // namespace litebnn::examples
