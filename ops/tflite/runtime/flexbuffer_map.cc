#include "tflite/runtime/flexbuffer_map.h"

#include <cstring>
#include <limits>

namespace litebnn {
namespace {

// The fields of a packed type. The upper six bits are the value's type. The lower two bits are the logarithm (base 2)
// of the width of the data to which the value refers.
constexpr uint8_t kTypeInt = 1;
constexpr uint8_t kTypeUInt = 2;
constexpr uint8_t kTypeIndirectInt = 6;
constexpr uint8_t kTypeIndirectUInt = 7;
constexpr uint8_t kTypeMap = 9;

// The largest number of keys. It limits the linear search for keys, because many nodes may share a map.
constexpr size_t kMaxKeys = 32;

uint8_t TypeOf(uint8_t packed_type) { return static_cast<uint8_t>(packed_type >> 2); }
uint8_t WidthOf(uint8_t packed_type) { return static_cast<uint8_t>(1 << (packed_type & 3)); }
bool IsWidth(uint64_t value) { return value == 1 || value == 2 || value == 4 || value == 8; }

int64_t SignExtend(uint64_t value, uint8_t width) {
  const int shift = 64 - 8 * width;
  return static_cast<int64_t>(value << shift) >> shift;
}

}  // namespace

FlexbufferMap::FlexbufferMap(const uint8_t* data, size_t size) : data_(data), size_(size), valid_(ReadMap()) {}

bool FlexbufferMap::ReadUnsigned(size_t position, uint8_t width, uint64_t* value) const {
  if (position > size_ || size_ - position < width) return false;
  *value = 0;
  // FlexBuffers are little endian on every platform.
  for (uint8_t i = 0; i < width; ++i) *value |= static_cast<uint64_t>(data_[position + i]) << (8 * i);
  return true;
}

bool FlexbufferMap::FollowOffset(size_t position, uint8_t width, size_t* target) const {
  uint64_t offset;
  if (!ReadUnsigned(position, width, &offset) || offset > position) return false;
  *target = position - static_cast<size_t>(offset);
  return true;
}

bool FlexbufferMap::ReadVector(size_t begin, uint8_t width, Vector* vector) const {
  uint64_t count;
  if (begin < width || !ReadUnsigned(begin - width, width, &count)) return false;
  if (count > (size_ - begin) / width) return false;
  *vector = {begin, static_cast<size_t>(count), width};
  return true;
}

bool FlexbufferMap::ReadMap() {
  // The buffer ends with the root's value, the root's packed type, and the width of the root's value.
  if (data_ == nullptr || size_ < 3) return false;
  const uint8_t root_width = data_[size_ - 1];
  const uint8_t root_type = data_[size_ - 2];
  if (!IsWidth(root_width) || size_ - 2 < root_width || TypeOf(root_type) != kTypeMap) return false;

  size_t map;
  const uint8_t width = WidthOf(root_type);
  if (!FollowOffset(size_ - 2 - root_width, root_width, &map) || !ReadVector(map, width, &values_)) return false;
  // The values' packed types follow the values, one byte for each.
  if (values_.count > kMaxKeys || values_.count > size_ - values_.begin - values_.count * width) return false;

  // In a FlexBuffer map, the offset of the keys, the width of the keys, and the number of values come right before the
  // values.
  size_t keys;
  uint64_t keys_width;
  if (map < size_t{3} * width || !FollowOffset(map - size_t{3} * width, width, &keys)) return false;
  if (!ReadUnsigned(map - size_t{2} * width, width, &keys_width) || !IsWidth(keys_width)) return false;
  return ReadVector(keys, static_cast<uint8_t>(keys_width), &keys_) && keys_.count == values_.count;
}

FlexbufferMap::Lookup FlexbufferMap::Find(const char* key, int64_t* value) const {
  if (!valid_) return Lookup::kMalformed;
  const size_t key_bytes = std::strlen(key) + 1;
  for (size_t i = 0; i < keys_.count; ++i) {
    size_t candidate;
    if (!FollowOffset(keys_.begin + i * keys_.width, keys_.width, &candidate)) return Lookup::kMalformed;
    if (size_ - candidate < key_bytes || std::memcmp(data_ + candidate, key, key_bytes) != 0) continue;
    const uint8_t packed_type = data_[values_.begin + values_.count * values_.width + i];
    return ReadInteger(values_.begin + i * values_.width, values_.width, packed_type, value);
  }
  return Lookup::kMissing;
}

FlexbufferMap::Lookup FlexbufferMap::ReadInteger(size_t position, uint8_t width, uint8_t packed_type,
                                                 int64_t* value) const {
  const uint8_t type = TypeOf(packed_type);
  const bool indirect = type == kTypeIndirectInt || type == kTypeIndirectUInt;
  if (!indirect && type != kTypeInt && type != kTypeUInt) return Lookup::kNotAnInteger;
  if (indirect) {
    if (!FollowOffset(position, width, &position)) return Lookup::kMalformed;
    width = WidthOf(packed_type);
  }
  uint64_t bits;
  if (!ReadUnsigned(position, width, &bits)) return Lookup::kMalformed;
  if (type == kTypeInt || type == kTypeIndirectInt) {
    *value = SignExtend(bits, width);
  } else {
    constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
    *value = bits > static_cast<uint64_t>(kMax) ? kMax : static_cast<int64_t>(bits);
  }
  return Lookup::kFound;
}

}  // namespace litebnn
