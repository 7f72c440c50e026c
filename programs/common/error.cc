#include "common/error.h"

#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <new>

namespace litebnn::programs {

std::string Format(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  va_list again;
  va_copy(again, arguments);
  const int length = std::vsnprintf(nullptr, 0, format, arguments);
  va_end(arguments);
  std::string text(length > 0 ? static_cast<size_t>(length) : 0, '\0');
  std::vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  return text;
}

std::string Printable(std::string text) {
  constexpr size_t kHalf = 2000;
  if (text.size() > 2 * kHalf) text.replace(kHalf, text.size() - 2 * kHalf, "...");
  std::replace_if(text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  return text;
}

int RunProgram(void (*program)(int argc, char** argv), int argc, char** argv) {
  try {
    program(argc, argv);
    if (std::fflush(stdout) != 0 || std::ferror(stdout)) throw Error("cannot write to the standard output");
    return 0;
  } catch (const std::bad_alloc&) {
    std::fputs("error: out of memory\n", stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", Printable(error.what()).c_str());
  }
  return 1;
}

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
