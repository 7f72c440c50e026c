#include "common/error.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
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

}  // namespace litebnn::programs
