// Command line flags, as `--name=value`, `--name value` or `-n value`.
#pragma once

#include <climits>
#include <string>
#include <variant>
#include <vector>

namespace litebnn::examples {

// An integer flag and the values that it takes.
struct IntFlag {
  int* value;
  int minimum;
  int maximum = INT_MAX;
};

// A flag: where its value goes (which also holds its default), and what `--help` says of it.
struct Flag {
  const char* name;
  char letter;  // its short form; 0 for none
  std::variant<std::string*, bool*, float*, IntFlag> value;
  const char* help;
};

// Reads the command line into the flags' values. Booleans are 0, 1, true or false. Returns false where `--help` or `-h`
// was given, after printing the flags. Throws Error for an unknown flag, a value that the flag does not take, or an
// argument that is no flag.
bool ParseFlags(int argc, char** argv, const std::vector<Flag>& flags);

}  // namespace litebnn::examples
