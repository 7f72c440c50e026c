#include "label_image/bmp.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "common/error.h"

namespace litebnn::programs {
namespace {

// The possible sizes of the BMP header in bytes. Each size identifies a version of the format.
constexpr uint32_t kOs2Version1 = 12;
constexpr uint32_t kVersion1 = 40;
constexpr uint32_t kOs2Version2 = 64;
constexpr uint32_t kKnownHeaders[] = {kOs2Version1, kVersion1, 52, 56, kOs2Version2, 108, 124};

enum Compression : uint32_t { kNone = 0, kBitFields = 3, kAlphaBitFields = 6 };

constexpr size_t kFileHeader = 14;
// The position of the colour masks, which follow the header or are part of a longer header.
constexpr size_t kMasks = kFileHeader + kVersion1;
constexpr size_t kMaskBytes = 12;
constexpr size_t kColors = 256;

// Reads little-endian numbers at a given position of a string.
class Fields {
 public:
  explicit Fields(const std::string& bytes) : bytes_(bytes) {}

  uint32_t Get(size_t at, size_t size) const {
    if (bytes_.size() < at + size) throw Error("the BMP header is cut off");
    uint32_t value = 0;
    for (size_t i = size; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes_[at + i]);
    return value;
  }
  uint32_t Get16(size_t at) const { return Get(at, 2); }
  uint32_t Get32(size_t at) const { return Get(at, 4); }

 private:
  const std::string& bytes_;
};

void Put(std::string& bytes, uint32_t value, size_t size) {
  for (size_t i = 0; i < size; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
}

// The palette as 256 colours of 4 bytes each. Colours that the file omits are black.
std::string Palette(const std::string& bytes, size_t begin, size_t end, size_t entry_bytes, size_t colors) {
  std::string palette;
  for (size_t at = begin; palette.size() < 4 * colors && at + entry_bytes <= std::min(end, bytes.size());
       at += entry_bytes) {
    palette.append(bytes, at, 3);
    palette += '\0';
  }
  palette.resize(4 * kColors, '\0');
  return palette;
}

}  // namespace

std::string PlainBmp(const std::string& bytes) {
  const Fields fields(bytes);
  const size_t pixels_at = fields.Get32(10);
  const uint32_t header = fields.Get32(14);
  if (std::find(std::begin(kKnownHeaders), std::end(kKnownHeaders), header) == std::end(kKnownHeaders)) {
    throw Error(Format("its BMP header has %u bytes, expected 12, 40, 52, 56, 64, 108 or 124", header));
  }
  const bool os2 = header == kOs2Version1;
  const auto width = static_cast<int32_t>(os2 ? fields.Get16(18) : fields.Get32(18));
  const auto height = static_cast<int32_t>(os2 ? fields.Get16(20) : fields.Get32(22));
  const uint32_t bits = fields.Get16(os2 ? 24 : 28);
  const uint32_t compression = os2 ? kNone : fields.Get32(30);
  const uint32_t colors_used = os2 ? 0 : fields.Get32(46);

  if (width <= 0 || height == 0 || height == INT32_MIN) {
    throw Error(Format("its BMP header says %d x %d pixels", width, height));
  }
  if (bits != 1 && bits != 4 && bits != 8 && bits != 16 && bits != 24 && bits != 32) {
    throw Error(Format("its BMP header says %u bits per pixel, expected 1, 4, 8, 16, 24 or 32", bits));
  }
  const bool masks = (compression == kBitFields || compression == kAlphaBitFields) && header != kOs2Version2;
  if (compression != kNone && !masks) throw Error("compressed BMP files are not supported");
  if (masks && bits != 16 && bits != 32)
    throw Error(Format("its BMP header has colour masks for %u bits per pixel", bits));

  const uint64_t row_bits = uint64_t{static_cast<uint32_t>(width)} * bits;
  const uint64_t row_bytes = (row_bits + 31) / 32 * 4;
  const uint64_t rows = static_cast<uint64_t>(std::abs(int64_t{height}));
  // Some writers of BMP files omit the padding after the last row.
  const uint64_t expected = (rows - 1) * row_bytes + (row_bits + 7) / 8;
  if (pixels_at < kFileHeader + header) throw Error("its BMP header says that the pixels begin within the header");
  const size_t present = bytes.size() - std::min(pixels_at, bytes.size());
  if (present < expected) {
    throw Error(Format("it is cut off: %zu bytes of pixels, expected %llu", present,
                       static_cast<unsigned long long>(expected)));
  }

  std::string plain = "BM";
  const size_t palette_bytes = bits <= 8 ? 4 * kColors : 0;
  plain.append(8, '\0');
  Put(plain, static_cast<uint32_t>(kMasks + (masks ? kMaskBytes : 0) + palette_bytes), 4);
  Put(plain, kVersion1, 4);
  Put(plain, static_cast<uint32_t>(width), 4);
  Put(plain, static_cast<uint32_t>(height), 4);
  Put(plain, 1, 2);
  Put(plain, bits, 2);
  Put(plain, masks ? kBitFields : kNone, 4);
  plain.append(20, '\0');
  if (masks) plain.append(bytes, kMasks, kMaskBytes);
  if (palette_bytes > 0) {
    const size_t colors = size_t{1} << bits;
    plain += Palette(bytes, kFileHeader + header, pixels_at, os2 ? 3 : 4,
                     colors_used == 0 ? colors : std::min<size_t>(colors, colors_used));
  }
  plain.append(bytes, pixels_at, static_cast<size_t>(std::min<uint64_t>(present, rows * row_bytes)));
  return plain;
}

}  // namespace litebnn::programs
