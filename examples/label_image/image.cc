#include "label_image/image.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "common/error.h"
#include "label_image/bmp.h"

namespace {

// The largest memory block of the decoder: bytes for 2^26 pixels with 4 channels of 16 bits. The header of a small file
// may ask for far more.
constexpr size_t kLargestBlock = size_t{1} << 29;

void* AllocateBlock(size_t size) { return size <= kLargestBlock ? std::malloc(size) : nullptr; }
void* ReallocateBlock(void* block, size_t size) { return size <= kLargestBlock ? std::realloc(block, size) : nullptr; }

}  // namespace

#define STBI_MALLOC(size) AllocateBlock(size)
#define STBI_REALLOC(block, size) ReallocateBlock(block, size)
#define STBI_FREE(block) std::free(block)
#define STBI_ONLY_BMP
#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
#define STBI_ONLY_PNM
#define STBI_NO_STDIO
#define STBI_NO_LINEAR
#define STBI_FAILURE_USERMSG
#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#include "stb_image.h"

namespace litebnn::programs {
namespace {

constexpr int64_t kMostPixels = int64_t{1} << 26;
// The limit for the number of pixels times the number of scans of a progressive JPEG. Each scan visits all pixels, but
// may take only a few bytes of the file.
constexpr int64_t kMostScannedPixels = int64_t{1} << 30;
// The largest number of pixels per byte of a JPEG. A JPEG needs at least one bit per block of 8 x 8 pixels, but the
// decoder continues if the data is missing.
constexpr int64_t kMostPixelsOfJpegByte = 8 * 64;

bool BeginsWith(const std::string& bytes, const char* magic) { return bytes.rfind(magic, 0) == 0; }

void CheckJpeg(const std::string& bytes, int64_t pixels) {
  // A JPEG has the bytes 0xff 0xda at the start of a scan, and 0xff 0xd9 at its end. Compressed data contains neither
  // pair, because in it a 0 follows each 0xff.
  const std::string start_of_scan = "\xff\xda";
  const std::string end_of_image = "\xff\xd9";
  int64_t scans = 0;
  size_t last = 0;
  for (size_t at = bytes.find(start_of_scan); at != std::string::npos; at = bytes.find(start_of_scan, at + 2)) {
    ++scans;
    last = at;
  }
  if (bytes.find(end_of_image, last) == std::string::npos) throw Error("it is cut off: the JPEG has no end");
  if (pixels > kMostPixelsOfJpegByte * static_cast<int64_t>(bytes.size())) {
    throw Error(
        Format("it is cut off: %zu bytes cannot hold its %lld pixels", bytes.size(), static_cast<long long>(pixels)));
  }
  if (scans * pixels > kMostScannedPixels) {
    throw Error(Format("the JPEG has %lld scans, too many for its size", static_cast<long long>(scans)));
  }
}

void CheckPng(const std::string& bytes) {
  // If no other pixels came before an empty chunk of pixels, stb_image copies the chunk to a null pointer.
  const size_t first = bytes.find("IDAT");
  if (first != std::string::npos && bytes.compare(first - 4, 4, std::string(4, '\0')) == 0) {
    throw Error("its first chunk of pixels is empty");
  }
}

}  // namespace

Image DecodeImage(const std::string& bytes, int channels) {
  const std::string plain = BeginsWith(bytes, "BM") ? PlainBmp(bytes) : bytes;
  const auto* data = reinterpret_cast<const stbi_uc*>(plain.data());
  const int size = static_cast<int>(plain.size());

  int width = 0;
  int height = 0;
  if (!stbi_info_from_memory(data, size, &width, &height, nullptr)) {
    throw Error("it is no BMP, PNG, JPEG or binary PPM file, or its header is damaged");
  }
  height = std::abs(height);  // negative for a BMP that begins with its top row
  const int64_t pixels = int64_t{width} * height;
  if (pixels <= 0 || pixels > kMostPixels) {
    throw Error(Format("it has %d x %d pixels, expected at most %lld in all", width, height,
                       static_cast<long long>(kMostPixels)));
  }
  if (BeginsWith(bytes, "\xff\xd8")) CheckJpeg(bytes, pixels);
  if (BeginsWith(bytes, "\x89PNG")) CheckPng(bytes);

  const std::unique_ptr<stbi_uc, void (*)(void*)> decoded(
      stbi_load_from_memory(data, size, &width, &height, nullptr, channels), stbi_image_free);
  if (!decoded) throw Error(stbi_failure_reason());
  const size_t values = static_cast<size_t>(width) * static_cast<size_t>(height) * static_cast<size_t>(channels);
  return {height, width, channels, std::vector<uint8_t>(decoded.get(), decoded.get() + values)};
}

namespace {

Taps BilinearTaps(int in_size, int out_size) {
  const float scale = static_cast<float>(in_size) / static_cast<float>(out_size);
  Taps taps;
  for (int i = 0; i < out_size; ++i) {
    const float position = static_cast<float>(i) * scale;
    const int first = std::min(static_cast<int>(std::floor(position)), in_size - 1);
    const float second_weight = position - static_cast<float>(first);
    taps.push_back({{static_cast<size_t>(first), 1 - second_weight},
                    {static_cast<size_t>(std::min(first + 1, in_size - 1)), second_weight}});
  }
  return taps;
}

// The weight of an input pixel in a bicubic resize, by its distance of 0 to 2 pixels.
float CubicWeight(float distance) {
  constexpr float kA = -0.75f;  // the free coefficient of cubic convolution, as in TensorFlow 1
  return distance <= 1 ? ((kA + 2) * distance - (kA + 3)) * distance * distance + 1
                       : ((kA * distance - 5 * kA) * distance + 8 * kA) * distance - 4 * kA;
}

Taps BicubicTaps(int in_size, int out_size) {
  const float scale = static_cast<float>(in_size) / static_cast<float>(out_size);
  Taps taps;
  for (int i = 0; i < out_size; ++i) {
    const float position = static_cast<float>(i) * scale;
    const int first = static_cast<int>(std::floor(position));
    std::vector<Tap>& four = taps.emplace_back();
    for (int index = first - 1; index <= first + 2; ++index) {
      const float weight = CubicWeight(std::abs(position - static_cast<float>(index)));
      four.push_back({static_cast<size_t>(std::clamp(index, 0, in_size - 1)), weight});
    }
  }
  return taps;
}

}  // namespace

Resampling Bilinear(const Image& image, int height, int width) {
  return {BilinearTaps(image.height, height), BilinearTaps(image.width, width)};
}

Resampling Bicubic(const Image& image, int height, int width) {
  return {BicubicTaps(image.height, height), BicubicTaps(image.width, width)};
}

Image CenterCrop(const Image& image, float share) {
  const int side = std::max(1, static_cast<int>(share * static_cast<float>(std::min(image.height, image.width))));
  const int top = (image.height - side + 1) / 2;
  const int left = (image.width - side + 1) / 2;
  const auto at = [&image](int y, int x) {
    return image.pixels.begin() + (int64_t{y} * image.width + x) * image.channels;
  };
  Image square = {side, side, image.channels, {}};
  for (int y = top; y < top + side; ++y) square.pixels.insert(square.pixels.end(), at(y, left), at(y, left + side));
  return square;
}

}  // namespace litebnn::programs
