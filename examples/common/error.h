// Errors of the example programs: one line for the user, exit code 1.
#pragma once

#include <stdexcept>
#include <string>

namespace litebnn::examples {

// A problem that the user can fix. what() is one line with what was found and what was expected.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// printf into a string.
[[gnu::format(printf, 1, 2)]] std::string Format(const char* format, ...);

// Runs a program and returns its exit code; an exception becomes a line on stderr and exit code 1.
int RunProgram(void (*program)(int argc, char** argv), int argc, char** argv);

}  // namespace litebnn::examples
