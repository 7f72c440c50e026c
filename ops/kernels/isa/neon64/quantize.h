#pragma once

#include <cstdint>

namespace litebnn {

// As in the table (table.h).
void QuantizeFloat32Neon64(const float* input, int64_t rows, int32_t channels, uint32_t* output);
void QuantizeInt8Neon64(const int8_t* input, int64_t rows, int32_t channels, int32_t zero_point, uint32_t* output);

}  // namespace litebnn
