#include "common/read_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "common/error.h"

namespace litebnn::examples {

std::string ReadFile(const std::string& path, const char* what, size_t limit) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  struct stat info = {};
  if (file == nullptr || fstat(fileno(file.get()), &info) != 0) {
    throw Error(Format("cannot read the %s %s: %s", what, path.c_str(), std::strerror(errno)));
  }
  if (!S_ISREG(info.st_mode)) throw Error(Format("the %s %s is not a file", what, path.c_str()));
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) throw Error(Format("the %s %s is empty", what, path.c_str()));
  if (size > limit) {
    throw Error(Format("the %s %s has %zu bytes, expected at most %zu", what, path.c_str(), size, limit));
  }
  std::string content(size, '\0');
  if (std::fread(content.data(), 1, size, file.get()) != size) {
    throw Error(Format("cannot read the %s %s to its end", what, path.c_str()));
  }
  return content;
}

}  // namespace litebnn::examples
