#pragma once

#include <cstdio>
#include <string>

namespace litebnn::programs {

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
