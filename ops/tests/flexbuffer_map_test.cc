#include "tflite/runtime/flexbuffer_map.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/options.h"

namespace litebnn {
namespace {

using Lookup = FlexbufferMap::Lookup;

// A FlexBuffer map with one value of each type, in the bytes that the official Python encoder writes.
const std::vector<uint8_t> kMixed = {
    0x62, 0x6f, 0x6f, 0x6c, 0x00, 0x66, 0x61, 0x72, 0x00, 0x00, 0x00, 0x00, 0x90, 0xee, 0xfe, 0xff, 0x66, 0x69, 0x6c,
    0x74, 0x65, 0x72, 0x00, 0x68, 0x75, 0x67, 0x65, 0x00, 0x70, 0x61, 0x64, 0x64, 0x69, 0x6e, 0x67, 0x00, 0x73, 0x74,
    0x72, 0x69, 0x64, 0x65, 0x00, 0x74, 0x65, 0x78, 0x74, 0x00, 0x01, 0x78, 0x00, 0x75, 0x6e, 0x73, 0x69, 0x67, 0x6e,
    0x65, 0x64, 0x00, 0x09, 0x08, 0x3e, 0x3a, 0x30, 0x2a, 0x26, 0x1f, 0x19, 0x12, 0x00, 0x00, 0x0a, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x5c, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x04, 0x40, 0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xff, 0xff, 0xff, 0x2c, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x5f, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x5c, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x6b, 0x1a, 0x0f, 0x0b, 0x07, 0x0b, 0x14, 0x1c, 0x48, 0x27, 0x01};

// Searches for a key in a copy of the buffer. The copy has exactly the buffer's size, so that a sanitizer detects reads
// past the end.
Lookup Find(const std::vector<uint8_t>& bytes, const char* key, int64_t* value) {
  const std::vector<uint8_t> exact(bytes.begin(), bytes.end());
  return FlexbufferMap(exact.data(), exact.size()).Find(key, value);
}

TEST(FlexbufferMap, FindsEveryInteger) {
  const testing::Options options = {
      {"a", 0}, {"b", -1}, {"cc", std::numeric_limits<int64_t>::min()}, {"d", std::numeric_limits<int64_t>::max()}};
  const std::vector<uint8_t> bytes = testing::EncodeOptions(options);
  for (const auto& [key, expected] : options) {
    int64_t value = 77;
    EXPECT_EQ(Find(bytes, key.c_str(), &value), Lookup::kFound) << key;
    EXPECT_EQ(value, expected) << key;
  }
  int64_t value;
  EXPECT_EQ(Find(bytes, "c", &value), Lookup::kMissing);
  EXPECT_EQ(Find(bytes, "ccc", &value), Lookup::kMissing);
}

TEST(FlexbufferMap, TellsIntegersFromOtherValues) {
  int64_t value = 0;
  for (const char* key : {"bool", "filter", "text"}) EXPECT_EQ(Find(kMixed, key, &value), Lookup::kNotAnInteger) << key;
  const testing::Options integers = {{"far", -70000},
                                     {"huge", std::numeric_limits<int64_t>::max()},
                                     {"padding", -1},
                                     {"stride", 300},
                                     {"unsigned", 9}};
  for (const auto& [key, expected] : integers) {
    EXPECT_EQ(Find(kMixed, key.c_str(), &value), Lookup::kFound) << key;
    EXPECT_EQ(value, expected) << key;
  }
}

// Encodes the map {"a": -2} with numbers of `width` bytes each. After the types of the values, `unused` further bytes
// follow.
std::vector<uint8_t> MapOfWidth(uint8_t width, uint8_t unused = 0) {
  std::vector<uint8_t> bytes = {'a', 0};
  const auto add = [&](int value) {
    for (uint8_t i = 0; i < width; ++i) bytes.push_back(i == 0 ? static_cast<uint8_t>(value) : value < 0 ? 0xff : 0);
  };
  const uint8_t log = width == 8 ? 3 : width == 4 ? 2 : width == 2 ? 1 : 0;
  add(1);          // number of keys
  add(2 + width);  // distance of the key
  add(width);      // distance of the keys, then the width of their numbers
  add(width);
  add(1);  // number of values
  add(-2);
  bytes.push_back(static_cast<uint8_t>(1 << 2 | log));  // an 8-byte type: integer
  bytes.insert(bytes.end(), unused, 0);
  add(width + 1 + unused);  // distance of the values
  bytes.push_back(static_cast<uint8_t>(9 << 2 | log));
  bytes.push_back(width);
  return bytes;
}

TEST(FlexbufferMap, NumbersMayHaveAnyWidth) {
  for (const auto width : std::vector<uint8_t>{1, 2, 4, 8}) {
    int64_t value = 0;
    EXPECT_EQ(Find(MapOfWidth(width), "a", &value), Lookup::kFound) << int{width};
    EXPECT_EQ(value, -2) << int{width};
    EXPECT_EQ(Find(MapOfWidth(width), "b", &value), Lookup::kMissing) << int{width};
  }
}

TEST(FlexbufferMap, WhatIsBehindTheKeysIsNone) {
  // After the offsets of the keys comes another number, here 2. If a reader took this number for the offset of a key,
  // it would find a key two bytes before: "\x04".
  const std::vector<uint8_t> bytes = MapOfWidth(2);
  ASSERT_EQ(bytes[6], 2);
  ASSERT_EQ(std::vector<uint8_t>(bytes.begin() + 4, bytes.begin() + 6), (std::vector<uint8_t>{4, 0}));
  int64_t value;
  EXPECT_EQ(Find(bytes, "\x04", &value), Lookup::kMissing);
}

TEST(FlexbufferMap, KeysMayLieAtTheStart) {
  std::vector<uint8_t> bytes = MapOfWidth(2);
  // Removing two bytes changes the only key to the empty string. The key's offset then points to a zero byte in the
  // number of keys, which ends a string.
  bytes.erase(bytes.begin(), bytes.begin() + 2);
  bytes[2] = 1;
  int64_t value = 0;
  EXPECT_EQ(Find(bytes, "", &value), Lookup::kFound);
  EXPECT_EQ(value, -2);
}

TEST(FlexbufferMap, HasAKeyForEachValue) {
  std::vector<uint8_t> bytes = MapOfWidth(1);
  ASSERT_EQ(bytes[2], 1);
  for (const auto keys : std::vector<uint8_t>{0, 2}) {
    bytes[2] = keys;
    int64_t value;
    EXPECT_EQ(Find(bytes, "b", &value), Lookup::kMalformed) << int{keys};
  }
}

TEST(FlexbufferMap, HasNoMoreValuesThanTheBufferHasRoomForWithTheirTypes) {
  for (const auto width : std::vector<uint8_t>{1, 2, 4, 8}) {
    for (uint8_t unused = 0; unused <= width; ++unused) {
      std::vector<uint8_t> bytes = MapOfWidth(width, unused);
      const size_t values = size_t{2} + 5 * width, left = bytes.size() - values;
      ASSERT_EQ(bytes[values - width], 1);
      for (uint8_t count = 1; count <= left + 1; ++count) {
        bytes[2] = bytes[values - width] = count;
        EXPECT_EQ(FlexbufferMap(bytes.data(), bytes.size()).valid(), size_t{count} * (width + 1) <= left)
            << int{count} << " values of " << int{width} << " bytes, " << left << " left";
      }
    }
  }
}

TEST(FlexbufferMap, HasNumbersThatEndInTheBuffer) {
  constexpr uint8_t kIndirectOf8Bytes = 6 << 2 | 3;
  std::vector<uint8_t> bytes = MapOfWidth(1);
  ASSERT_EQ(bytes[8], 1 << 2);
  bytes[8] = kIndirectOf8Bytes;
  // The element bytes[7] of this FlexBuffer is an offset: the distance in bytes back to the number to which it refers.
  int64_t value;
  bytes[7] = 3;
  EXPECT_EQ(Find(bytes, "a", &value), Lookup::kFound);
  bytes[7] = 2;
  EXPECT_EQ(Find(bytes, "a", &value), Lookup::kMalformed);
}

TEST(FlexbufferMap, HasKeysInTheBuffer) {
  // Each pair is the position of a byte and its damaged value. The first pair makes an offset point before the buffer.
  // The other pairs give numbers a width that does not exist.
  for (const std::pair<size_t, uint8_t>& damage : {std::pair<size_t, uint8_t>{4, 200}, {5, 0}, {5, 3}}) {
    std::vector<uint8_t> bytes = MapOfWidth(1);
    bytes[damage.first] = damage.second;
    EXPECT_FALSE(FlexbufferMap(bytes.data(), bytes.size()).valid()) << damage.first;
  }
}

TEST(FlexbufferMap, HasAtMost32Keys) {
  testing::Options options;
  for (int i = 0; i < 32; ++i) options["key " + std::to_string(i)] = i;
  int64_t value = 0;
  EXPECT_EQ(Find(testing::EncodeOptions(options), "key 31", &value), Lookup::kFound);
  EXPECT_EQ(value, 31);
  options["one more"] = 1;
  EXPECT_EQ(Find(testing::EncodeOptions(options), "key 31", &value), Lookup::kMalformed);
}

TEST(FlexbufferMap, NoBufferIsNoMap) {
  EXPECT_FALSE(FlexbufferMap(nullptr, 0).valid());
  EXPECT_FALSE(FlexbufferMap(nullptr, 10).valid());
}

TEST(FlexbufferMap, OffsetsThatLeaveTheBufferAreMalformed) {
  constexpr uint8_t kMap = 9 << 2;
  // The root of each buffer is invalid. It lies before the buffer, has no value count before it, or has more values
  // than the buffer has bytes.
  for (const std::vector<uint8_t>& bytes :
       {std::vector<uint8_t>{200, kMap, 1}, {0, kMap, 1}, {200, 0, 1, kMap, 1}, {0, 1, 1, 0, 1, kMap, 1}}) {
    int64_t value;
    EXPECT_FALSE(FlexbufferMap(bytes.data(), bytes.size()).valid()) << bytes.size();
    EXPECT_EQ(Find(bytes, "a", &value), Lookup::kMalformed) << bytes.size();
  }
}

TEST(FlexbufferMap, OtherRootsAreNoMaps) {
  const std::vector<uint8_t> bytes = testing::EncodeOptions({{"channels_in", 5}, {"padding", 1}});
  ASSERT_TRUE(FlexbufferMap(bytes.data(), bytes.size()).valid());
  for (const int type : {0, 1, 5, 10, 11}) {
    std::vector<uint8_t> other = bytes;
    other[bytes.size() - 2] = static_cast<uint8_t>(type << 2 | (bytes[bytes.size() - 2] & 3));
    EXPECT_FALSE(FlexbufferMap(other.data(), other.size()).valid()) << type;
  }
  for (const int width : {0, 3, 5, 255}) {
    std::vector<uint8_t> other = bytes;
    other.back() = static_cast<uint8_t>(width);
    EXPECT_FALSE(FlexbufferMap(other.data(), other.size()).valid()) << width;
  }
}

TEST(FlexbufferMap, TruncatedAnywhere) {
  const std::vector<uint8_t> bytes = testing::EncodeOptions({{"channels_in", 5}, {"padding", 1}});
  for (size_t size = 0; size < bytes.size(); ++size) {
    for (const char* key : {"channels_in", "padding", "other"}) {
      int64_t value;
      Find({bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size)}, key, &value);
      Find({bytes.end() - static_cast<ptrdiff_t>(size), bytes.end()}, key, &value);
    }
  }
}

TEST(FlexbufferMap, EveryByteToEveryValue) {
  const std::vector<uint8_t> bytes = testing::EncodeOptions({{"channels_in", 5}, {"padding", 1}});
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::vector<uint8_t> changed = bytes;
    for (int byte = 0; byte < 256; ++byte) {
      changed[i] = static_cast<uint8_t>(byte);
      int64_t value;
      Find(changed, "padding", &value);
    }
  }
}

TEST(FlexbufferMap, RandomBytes) {
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::vector<uint8_t> bytes(random() % 40);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    if (bytes.size() >= 2) {
      bytes[bytes.size() - 1] = static_cast<uint8_t>(1 << random() % 4);
      bytes[bytes.size() - 2] = static_cast<uint8_t>(9 << 2 | random() % 4);
    }
    int64_t value;
    Find(bytes, "a", &value);
  }
}

}  // namespace
}  // namespace litebnn
