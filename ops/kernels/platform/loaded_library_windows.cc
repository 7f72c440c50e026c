#include <windows.h>

#include "kernels/platform/loaded_library.h"

namespace litebnn {
namespace {

// Reads the volume and file numbers that identify the file at `path`. On Windows they come from a file handle, because
// stat does not return them.
bool ReadFileNumbers(const char* path, BY_HANDLE_FILE_INFORMATION* numbers) {
  constexpr DWORD kShared = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
  const HANDLE file = CreateFileA(path, 0, kShared, nullptr, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, nullptr);
  if (file == INVALID_HANDLE_VALUE) return false;
  const bool read = GetFileInformationByHandle(file, numbers) != 0;
  CloseHandle(file);
  return read;
}

// The system's message for its last error, with the error number.
std::string DescribeLastError() {
  const DWORD number = GetLastError();
  char words[256];
  constexpr DWORD kFlags = FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS | FORMAT_MESSAGE_MAX_WIDTH_MASK;
  const DWORD length = FormatMessageA(kFlags, nullptr, number, 0, words, sizeof(words), nullptr);
  std::string text(words, length);
  while (!text.empty() && (text.back() == ' ' || text.back() == '.')) text.pop_back();
  return text + (text.empty() ? "" : " ") + "(Windows error " + std::to_string(number) + ")";
}

}  // namespace

void* OpenLibrary(const char* path, std::string* problem) {
  // The flag makes Windows search the folder of the library, too, for other libraries that the library needs.
  void* library = LoadLibraryExA(path, nullptr, LOAD_WITH_ALTERED_SEARCH_PATH);
  if (library == nullptr) *problem = DescribeLastError();
  return library;
}

void* FindLoadedLibrary(const char* name) {
  HMODULE library = nullptr;
  return GetModuleHandleExA(0, name, &library) != 0 ? library : nullptr;
}

void CloseLibrary(void* library) {
  if (library != nullptr) FreeLibrary(static_cast<HMODULE>(library));
}

void* FindSymbol(void* library, const char* name) {
  const HMODULE module = library != nullptr ? static_cast<HMODULE>(library) : GetModuleHandleA(nullptr);
  return reinterpret_cast<void*>(GetProcAddress(module, name));
}

bool IsFileOfThisCode(const char* path) {
  constexpr DWORD kFromAddress = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
  HMODULE module = nullptr;
  char self[MAX_PATH];
  BY_HANDLE_FILE_INFORMATION ours, theirs;
  if (GetModuleHandleExA(kFromAddress, reinterpret_cast<const char*>(IsFileOfThisCode), &module) == 0) return false;
  const DWORD length = GetModuleFileNameA(module, self, MAX_PATH);
  return length > 0 && length < MAX_PATH && ReadFileNumbers(self, &ours) && ReadFileNumbers(path, &theirs) &&
         ours.dwVolumeSerialNumber == theirs.dwVolumeSerialNumber && ours.nFileIndexHigh == theirs.nFileIndexHigh &&
         ours.nFileIndexLow == theirs.nFileIndexLow;
}

}  // namespace litebnn
