// Fuzzes the image decoder of label_image: any bytes must give an image of the declared size, or an error.
#include <cstdlib>

#include "common/error.h"
#include "label_image/image.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace litebnn::programs;
  if (size == 0) return 0;
  // The first byte selects the channels, so that the bytes after it are a plain file.
  const int channels = data[0] % 2 == 0 ? 1 : 3;
  try {
    const Image image = DecodeImage(std::string(data + 1, data + size), channels);
    const auto expected =
        static_cast<size_t>(image.height) * static_cast<size_t>(image.width) * static_cast<size_t>(image.channels);
    if (image.channels != channels || image.pixels.size() != expected) std::abort();
    const auto pixel = [](float value, size_t) { return static_cast<uint8_t>(value); };
    const std::vector<uint8_t> resized = Resize<uint8_t>(image, Bilinear(image, 3, 5), pixel);
    if (resized.size() != size_t{15} * static_cast<size_t>(channels)) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
