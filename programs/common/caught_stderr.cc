#include "common/caught_stderr.h"

#include <unistd.h>

#include <algorithm>

namespace litebnn::programs {

CaughtStderr::CaughtStderr() : stderr_(dup(STDERR_FILENO)), caught_(std::tmpfile()) {
  if (caught_ != nullptr) dup2(fileno(caught_), STDERR_FILENO);
}

CaughtStderr::~CaughtStderr() {
  dup2(stderr_, STDERR_FILENO);
  close(stderr_);
  if (caught_ != nullptr) std::fclose(caught_);
}

std::string CaughtStderr::errors() const {
  std::string text;
  if (caught_ != nullptr) {
    // stderr and this reader share one position in the temporary file. After the file was read to its end, the position
    // is where the next message must be written.
    std::rewind(caught_);
    for (int letter = std::fgetc(caught_); letter != EOF; letter = std::fgetc(caught_)) {
      text += static_cast<char>(letter);
    }
  }
  const std::string mark = "ERROR: ";
  std::string errors;
  for (size_t begin = 0, end; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    if (line.rfind(mark, 0) == 0) errors += line.substr(mark.size()) + "\n";
  }
  return errors;
}

}  // namespace litebnn::programs
