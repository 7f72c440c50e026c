#pragma once

#include <string>

namespace litebnn::examples {

// The same picture as a BMP of the plainest kind: a 40-byte header, a palette of 256 colours where there is one, and
// all of its pixels. stb_image gets the colours wrong of OS/2 files with a palette and of version 3 headers with masks,
// and takes the missing part of a cut off file for black. `bytes` begin with "BM". Throws Error.
std::string PlainBmp(const std::string& bytes);

}  // namespace litebnn::examples
