// Command line flags, which users write as `--name=value`, `--name value` or `-n value`.
#pragma once

#include <climits>
#include <string>
#include <variant>
#include <vector>

namespace litebnn::programs {

// A flag whose value is an integer, and the range of its values.
struct IntFlag {
  int* value;
  int minimum;
  int maximum = INT_MAX;
};

// A flag of a program: a pointer to the variable that holds its default and gets its value, and its help text.
struct Flag {
  const char* name;
  char letter;  // short form; 0 for none
  std::variant<std::string*, bool*, float*, IntFlag> value;
  const char* help;
};

// Parses the command line and stores the flags' values. Booleans are 0, 1, true or false. If `--help` or `-h` is given,
// prints the flags and returns false. Throws Error for an unknown flag, an invalid value, or an argument that is no
// flag.
bool ParseFlags(int argc, char** argv, const std::vector<Flag>& flags);

}  // namespace litebnn::programs
