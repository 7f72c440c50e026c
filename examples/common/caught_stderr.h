#pragma once

#include <cstdio>
#include <string>

namespace litebnn::examples {

// Captures everything that is written to stderr during its lifetime.
class CaughtStderr {
 public:
  CaughtStderr();
  ~CaughtStderr();
  CaughtStderr(const CaughtStderr&) = delete;
  CaughtStderr& operator=(const CaughtStderr&) = delete;

  // The captured lines with which the runtime reported errors.
  std::string errors() const;

 private:
  int stderr_;
  std::FILE* caught_;
};

}  // namespace litebnn::examples
