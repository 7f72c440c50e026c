// Errors of the programs. The user sees an error as one line, and the program ends with exit code 1.
#pragma once

#include <cstdio>
#include <stdexcept>
#include <string>

namespace litebnn::programs {

// A problem that the user can fix. Its what() is one line, which says what was found and what was expected.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Formats a string as printf does, and returns it.
[[gnu::format(printf, 1, 2)]] std::string Format(const char* format, ...);

// Makes text of a model or of a file safe to print. Control characters, which can command a terminal, become question
// marks. Megabytes lose their middle.
std::string Printable(std::string text);

// Calls the main function of a program and returns its exit code. If the function throws an exception, prints a line to
// stderr and returns 1.
int RunProgram(void (*program)(int argc, char** argv), int argc, char** argv);

// Captures everything that is written to stderr during this object's lifetime.
class CaughtStderr {
 public:
  CaughtStderr();
  ~CaughtStderr();
  CaughtStderr(const CaughtStderr&) = delete;
  CaughtStderr& operator=(const CaughtStderr&) = delete;

  // Returns the captured lines in which the runtime reported errors.
  std::string errors() const;

 private:
  int stderr_;
  std::FILE* caught_;
};

}  // namespace litebnn::programs
