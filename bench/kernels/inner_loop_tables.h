#pragma once

#include <cstdint>

namespace litebnn {

int64_t InnerLoopAvx2(int64_t macs);
int64_t InnerLoopAvx512(int64_t macs);

}  // namespace litebnn
