#pragma once

#include <cstddef>
#include <string>

namespace litebnn::examples {

// Reads a regular file of 1 to `limit` bytes. `what` names the file in error messages. Throws Error.
std::string ReadFile(const std::string& path, const char* what, size_t limit);

}  // namespace litebnn::examples
