#pragma once

#include <cstddef>
#include <string>

namespace litebnn::programs {

// Reads a regular file of 1 to `limit` bytes. `what` names the file in error messages. Throws Error.
std::string ReadFile(const std::string& path, const char* what, size_t limit);

// Returns false if the file cannot be opened for writing. If the path is a link to a missing file, the function makes
// this file. Programs call the function before long work, so that the user does not wait minutes for the error.
bool CanWrite(const std::string& path);

// Writes a file completely or not at all, and returns true if it is written. Links, pipes and devices are written in
// place.
bool WriteFile(const std::string& path, const std::string& content);

// Switches stdin and stdout to binary mode, so that Windows does not translate line ends.
void MakeStreamsBinary();

}  // namespace litebnn::programs
