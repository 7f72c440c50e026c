#pragma once

#include <string>

namespace litebnn::examples {

// Catches what is written to stderr as long as it lives.
class CaughtStderr {
 public:
  CaughtStderr();
  ~CaughtStderr();
  CaughtStderr(const CaughtStderr&) = delete;
  CaughtStderr& operator=(const CaughtStderr&) = delete;

  // The lines with which the runtime has reported an error.
  std::string errors() const;

 private:
  int stderr_;
  int caught_;
};

}  // namespace litebnn::examples
