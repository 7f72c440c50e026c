#include "common/files.h"

#include <sys/stat.h>
#include <unistd.h>
#if defined(_WIN32)
#include <fcntl.h>
#include <io.h>
#include <windows.h>
#endif

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "common/error.h"

namespace litebnn::programs {
namespace {

#if defined(_WIN32)
constexpr char kSlashes[] = "/\\";

bool IsLink(const std::string& path) {
  const DWORD attributes = GetFileAttributesA(path.c_str());
  return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0;
}

// On Windows, the C library's function rename does not replace a file.
bool Rename(const std::string& from, const std::string& to) {
  return MoveFileExA(from.c_str(), to.c_str(), MOVEFILE_REPLACE_EXISTING) != 0;
}
#else
constexpr char kSlashes[] = "/";

bool IsLink(const std::string& path) {
  struct stat info = {};
  return lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode);
}

bool Rename(const std::string& from, const std::string& to) { return std::rename(from.c_str(), to.c_str()) == 0; }
#endif

// True if the content is first written to another file, which is then renamed. Only regular files are written in this
// way. Links, pipes and devices are opened and written in place.
bool IsReplaced(const std::string& path) {
  struct stat info = {};
  if (IsLink(path)) return false;
  return stat(path.c_str(), &info) == 0 ? S_ISREG(info.st_mode) : errno == ENOENT;
}

bool WriteInPlace(const std::string& path, const std::string& content) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return false;
  const bool is_written = std::fwrite(content.data(), 1, content.size(), file) == content.size();
  return std::fclose(file) == 0 && is_written;
}

}  // namespace

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

bool CanWrite(const std::string& path) {
  struct stat info = {};
  const bool exists = stat(path.c_str(), &info) == 0;
  const size_t name = path.find_last_of(kSlashes) + 1;  // 0 if the path has no folder
  if (name == path.size() || (exists && S_ISDIR(info.st_mode))) return false;
  if (IsReplaced(path)) return access((path.substr(0, name) + ".").c_str(), W_OK) == 0;
  // The path may be a link whose target does not exist yet.
  return exists ? access(path.c_str(), W_OK) == 0 : WriteInPlace(path, "");
}

bool WriteFile(const std::string& path, const std::string& content) {
  if (!IsReplaced(path)) return WriteInPlace(path, content);
  const std::string part = path + ".new";
  const bool is_written = WriteInPlace(part, content) && Rename(part, path);
  if (!is_written) std::remove(part.c_str());
  return is_written;
}

void MakeStreamsBinary() {
#if defined(_WIN32)
  _setmode(_fileno(stdin), _O_BINARY);
  _setmode(_fileno(stdout), _O_BINARY);
#endif
}

}  // namespace litebnn::programs
