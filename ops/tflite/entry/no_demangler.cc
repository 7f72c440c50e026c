// Keeps the C++ library's demangler, a third of what would be linked in, out of the shared library: its handler for
// uncaught exceptions wants it, to print a type's name. That one then prints the name as it is.
#include <cstddef>

extern "C" char* __cxa_demangle(const char* /*mangled*/, char* /*buffer*/, size_t* /*length*/, int* status) {
  constexpr int kNoValidName = -2;
  if (status != nullptr) *status = kNoValidName;
  return nullptr;
}
