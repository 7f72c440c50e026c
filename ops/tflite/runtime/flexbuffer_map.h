// Reads integers from a FlexBuffer map, the format of a custom op's options in a model.
//
// The format is described at https://flatbuffers.dev/flatbuffers_internals ("FlexBuffers"). The buffer comes from a
// model file and may contain anything, so every offset is checked against its size first.
#pragma once

#include <cstddef>
#include <cstdint>

namespace litebnn {

class FlexbufferMap {
 public:
  enum class Lookup { kFound, kMissing, kNotAnInteger, kMalformed };

  // The buffer is not copied and must outlive the map.
  FlexbufferMap(const uint8_t* data, size_t size);

  // False if the buffer is not a FlexBuffer with a map of at most 32 keys at its root.
  bool valid() const { return valid_; }

  // Looks up an integer. Unsigned values above INT64_MAX are returned as INT64_MAX.
  Lookup Find(const char* key, int64_t* value) const;

 private:
  // A vector of elements of `width` bytes each, the first at position `begin`. All elements are within the buffer.
  struct Vector {
    size_t begin, count;
    uint8_t width;
  };

  bool ReadUnsigned(size_t position, uint8_t width, uint64_t* value) const;
  bool FollowOffset(size_t position, uint8_t width, size_t* target) const;
  bool ReadVector(size_t begin, uint8_t width, Vector* vector) const;
  bool ReadMap();
  Lookup ReadInteger(size_t position, uint8_t width, uint8_t packed_type, int64_t* value) const;

  const uint8_t* data_;
  size_t size_;
  Vector keys_ = {};
  Vector values_ = {};
  bool valid_;  // last, because its initializer sets the members above
};

}  // namespace litebnn
