#include <dlfcn.h>
#include <sys/stat.h>

#include "kernels/platform/loaded_library.h"

#if defined(__APPLE__)
#include <mach-o/dyld.h>

#include <cstdint>
#include <cstring>
#endif

namespace litebnn {
namespace {

#if defined(__APPLE__)
// Returns the path of the loaded library with the file name `name`. On macOS dlopen finds a loaded library only by its
// path or install name.
const char* FindPathOfLoaded(const char* name) {
  for (uint32_t i = 0; i < _dyld_image_count(); ++i) {
    const char* path = _dyld_get_image_name(i);
    const char* slash = path == nullptr ? nullptr : std::strrchr(path, '/');
    if (slash != nullptr && std::strcmp(slash + 1, name) == 0) return path;
  }
  return name;
}
#else
const char* FindPathOfLoaded(const char* name) { return name; }
#endif

}  // namespace

void* OpenLibrary(const char* path, std::string* problem) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) *problem = dlerror();
  return library;
}

void* FindLoadedLibrary(const char* name) { return dlopen(FindPathOfLoaded(name), RTLD_LAZY | RTLD_NOLOAD); }

void CloseLibrary(void* library) {
  if (library != nullptr) dlclose(library);
}

void* FindSymbol(void* library, const char* name) { return dlsym(library != nullptr ? library : RTLD_DEFAULT, name); }

bool IsFileOfThisCode(const char* path) {
  Dl_info self;
  struct stat ours, theirs;
  return dladdr(reinterpret_cast<void*>(IsFileOfThisCode), &self) != 0 && stat(self.dli_fname, &ours) == 0 &&
         stat(path, &theirs) == 0 && ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

}  // namespace litebnn
