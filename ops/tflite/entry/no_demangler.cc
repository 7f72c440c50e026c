// Keeps the C++ library's demangler, a third of the linked size, out of the shared library. The handler for uncaught
// exceptions uses the demangler to print type names, and now prints them mangled.
#include <cstddef>

extern "C" char* __cxa_demangle(const char* /*mangled*/, char* /*buffer*/, size_t* /*length*/, int* status) {
  constexpr int kNoValidName = -2;
  if (status != nullptr) *status = kNoValidName;
  return nullptr;
}
