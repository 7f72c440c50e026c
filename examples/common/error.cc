#include "common/error.h"

#include <cstdarg>
#include <cstdio>
#include <new>

namespace litebnn::examples {

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

int RunProgram(void (*program)(int argc, char** argv), int argc, char** argv) {
  try {
    program(argc, argv);
    if (std::fflush(stdout) != 0 || std::ferror(stdout)) throw Error("cannot write to the standard output");
    return 0;
  } catch (const std::bad_alloc&) {
    std::fputs("error: out of memory\n", stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
  }
  return 1;
}

}  // namespace litebnn::examples
