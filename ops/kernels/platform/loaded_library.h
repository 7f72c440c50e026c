// Functions that load and find shared libraries in this process, and the ending of their file names.
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

// Loads the shared library at `path` without adding its symbols to the global ones of the process. On failure, returns
// null and stores the system's reason in `problem`.
void* OpenLibrary(const char* path, std::string* problem);

// Returns the library with the file name `name` if the process has already loaded it, otherwise null.
void* FindLoadedLibrary(const char* name);

// Releases a library that OpenLibrary or FindLoadedLibrary returned. Null is allowed.
void CloseLibrary(void* library);

// Returns the address of the symbol `name` that `library` exports, or null if there is none. A null `library` stands
// for the whole process.
void* FindSymbol(void* library, const char* name);

// True if `path` is the file from which this code was loaded, or a link to it.
bool IsFileOfThisCode(const char* path);

}  // namespace litebnn
