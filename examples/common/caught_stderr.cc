#include "common/caught_stderr.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

namespace litebnn::examples {

CaughtStderr::CaughtStderr() : stderr_(dup(STDERR_FILENO)), caught_(memfd_create("stderr", MFD_CLOEXEC)) {
  dup2(caught_, STDERR_FILENO);
}

CaughtStderr::~CaughtStderr() {
  dup2(stderr_, STDERR_FILENO);
  close(stderr_);
  close(caught_);
}

std::string CaughtStderr::errors() const {
  std::string text(static_cast<size_t>(std::max<off_t>(0, lseek(caught_, 0, SEEK_END))), '\0');
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, pread(caught_, text.data(), text.size(), 0))));
  const std::string mark = "ERROR: ";
  std::istringstream lines(text);
  std::string errors;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(mark, 0) == 0) errors += line.substr(mark.size()) + "\n";
  }
  return errors;
}

}  // namespace litebnn::examples
