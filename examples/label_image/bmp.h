#pragma once

#include <string>

namespace litebnn::programs {

// Converts a BMP to the simplest form: a 40-byte header, a palette of 256 colours if it has one, and all pixels. The
// library stb_image decodes wrong colours from OS/2 files with a palette and from version 3 headers with masks. It also
// fills missing parts of truncated files with black. `bytes` must begin with "BM". Throws Error.
std::string PlainBmp(const std::string& bytes);

}  // namespace litebnn::programs
