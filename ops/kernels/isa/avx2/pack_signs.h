#pragma once

#include <cstdint>

namespace litebnn {

// As Isa (isa.h) has them.
void PackFloat32SignsAvx2(const float* input, int64_t rows, int32_t channels, uint32_t* output);
void PackInt8SignsAvx2(const int8_t* input, int64_t rows, int32_t channels, int32_t zero_point, uint32_t* output);

}  // namespace litebnn
