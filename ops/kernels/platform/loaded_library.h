// Shared libraries in this process, and the operating system's names for them.
#pragma once

#include <string>

namespace litebnn {

// The ending of a shared library's file name on this system.
#if defined(_WIN32)
#define LITEBNN_LIBRARY_SUFFIX ".dll"
#elif defined(__APPLE__)
#define LITEBNN_LIBRARY_SUFFIX ".dylib"
#else
#define LITEBNN_LIBRARY_SUFFIX ".so"
#endif

// Loads the library in a file, and leaves its symbols out of the process's own. Null if that fails, with the system's
// reason in `problem`.
void* OpenLibrary(const char* path, std::string* problem);

// A library with this file name that the process has already loaded; null if there is none.
void* FindLoadedLibrary(const char* name);

// Ends the use of a library. Null is allowed.
void CloseLibrary(void* library);

// Address of an exported symbol of a library, or of the whole process if `library` is null. Null if there is none.
void* FindSymbol(void* library, const char* name);

// True if `path` is the file that this code was loaded from, or a link to it.
bool IsFileOfThisCode(const char* path);

}  // namespace litebnn
