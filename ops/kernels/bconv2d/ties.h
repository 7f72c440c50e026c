// The function tells if rounding an int8 output may meet a tie, which is a value halfway between two integers.
#pragma once

#include <cstdint>

namespace litebnn {

// True if dot * multiplier + bias, computed in floats, may be a tie between two levels of an int8 output with this zero
// point. `dot` is any integer whose magnitude is at most `depth`. Values that are clamped to the levels are no ties.
bool MayTie(float multiplier, float bias, int32_t depth, int32_t zero_point);

}  // namespace litebnn
