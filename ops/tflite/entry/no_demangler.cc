// The file keeps the C++ library's demangler out of the shared library, of which it would be a third, and out of the
// example programs. Without it, the handler for uncaught exceptions prints the mangled names of types.
#include <cstddef>

extern "C" char* __cxa_demangle(const char* /*mangled*/, char* /*buffer*/, size_t* /*length*/, int* status) {
  constexpr int kNoValidName = -2;
  if (status != nullptr) *status = kNoValidName;
  return nullptr;
}
