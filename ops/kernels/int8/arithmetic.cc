// Sums and products of int8 values in TensorFlow Lite's fixed-point arithmetic, and a float computation of sums with
// the same results.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "kernels/isa/requantize.h"
#include "kernels/isa/shared/lanes.h"
#include "kernels/kernels.h"

namespace litebnn {
namespace {

// The factor by which TensorFlow Lite's reference kernel multiplies both operands before it scales them.
constexpr int64_t kFactor = int64_t{1} << 20;
// If the scale of an operand is more than this number times the scale of the output, the sum is not computed in floats.
constexpr float kMostScale = 4.0f;
// For each operand, this many floats above and below its exact scale are tried as its scale. The aim is that float sums
// are rounded as in the reference kernel.
constexpr int kNeighbours = 3;
// Upper bound, in output levels, for the difference between a float sum and the reference kernel's fixed-point sum
// before rounding. The bound holds for all tried scales, and for sums that are not clamped.
constexpr float kNearTie = 0x1p-10f;
// Maximum number of operand pairs near a tie, that is, nearly halfway between two results. Most scales have a few
// hundred such pairs; with some scales, many sums are exactly halfway.
constexpr int32_t kMostPairs = 4096;

// The float that is `steps` representable floats after `value`, or before it if `steps` is negative.
float Move(float value, int steps) {
  for (; steps > 0; --steps) value = std::nextafter(value, 2 * value);
  for (; steps < 0; ++steps) value = std::nextafter(value, 0.0f);
  return value;
}

// Sets `fused` to a * b + c, rounded once. Returns false if doubles do not have room for the exact sum.
bool MultiplyAdd(float a, float b, float c, float* fused) {
  const double product = static_cast<double>(a) * static_cast<double>(b), addend = static_cast<double>(c);
  const double sum = product + addend, rest = sum - product;
  *fused = static_cast<float>(sum);
  return (product - (sum - rest)) + (addend - rest) == 0.0;
}

// Sets `rounded` to the sum of two operands in the order that FloatSum::may_fuse describes. Returns false if the sum
// cannot be computed exactly.
bool RoundFused(int32_t first, int32_t second, const FloatSum& floats, int32_t* rounded) {
  const float scale = floats.second_scale, offset = -static_cast<float>(floats.second_zero_point) * scale;
  const auto level = static_cast<float>(second + floats.second_zero_point);
  float product, sum;
  if (!MultiplyAdd(level, scale, offset, &product)) return false;
  if (!MultiplyAdd(static_cast<float>(first), floats.first_scale, product, &sum)) return false;
  *rounded = static_cast<int32_t>(std::nearbyint(sum));
  return true;
}

// A pair of operands whose sum is so near a tie that floats and fixed-point numbers may round it differently.
struct Pair {
  int32_t first, second;  // the operands, less their zero points
  int32_t sum;
};

// All pairs of operands near a tie: their sum is nearly halfway between two integers, so floats may round it
// differently from the reference kernel. The kernel's result for a pair follows from the pair's fixed-point sum.
struct NearTies {
  int32_t low, high;
  int32_t least_sums[257];
  Pair pairs[kMostPairs];
  int32_t count = 0;

  // Compares the result of a float sum with the reference kernel's result. Returns 0 if they are equal, 1 if the float
  // result is too small, and -1 if it is too large.
  int32_t Compare(const Pair& pair, int32_t rounded) const {
    const int32_t level = OneLane::Clamp(rounded, low, high) - low;
    return pair.sum < least_sums[level] ? -1 : level < high - low && pair.sum >= least_sums[level + 1] ? 1 : 0;
  }
  int32_t CompareFloats(const Pair& pair, const FloatSum& floats) const {
    const float first = static_cast<float>(pair.first) * floats.first_scale;
    return Compare(pair, OneLane::Round(first + static_cast<float>(pair.second) * floats.second_scale));
  }

  // Collects the exceptions: the pairs of operands for which `floats` gives another result than the reference kernel.
  // Sets floats->may_fuse, which allows fused multiply-adds. Returns false if there are too many exceptions.
  bool Check(FloatSum* floats) const {
    bool may_fuse = count < kMostPairs;  // otherwise there may be other pairs
    for (int32_t i = 0; i < count; ++i) {
      int32_t fused = 0;
      may_fuse =
          may_fuse && RoundFused(pairs[i].first, pairs[i].second, *floats, &fused) && Compare(pairs[i], fused) == 0;
      const int32_t difference = CompareFloats(pairs[i], *floats);
      if (difference == 0) continue;
      if (floats->exceptions == FloatSum::kMostExceptions) return false;
      floats->exception[floats->exceptions++] = {pairs[i].first, pairs[i].second, difference};
    }
    floats->may_fuse = may_fuse;
    return true;
  }
};

}  // namespace

bool Int8Sum::Set(const Int8SumSpec& spec) {
  spec_ = spec;
  const double unit = 2.0 * static_cast<double>(std::max(spec.first.scale, spec.second.scale));
  const double steps = static_cast<double>(spec.sum.scale) * static_cast<double>(kFactor);
  FixedPoint first, second, sum;
  if (!ToFixedPoint(static_cast<double>(spec.first.scale) / unit, &first) ||
      !ToFixedPoint(static_cast<double>(spec.second.scale) / unit, &second) || !ToFixedPoint(unit / steps, &sum)) {
    return false;
  }
  multiplier_ = sum.multiplier;
  shift_ = sum.shift;
  for (int32_t i = 0; i < 256; ++i) {
    first_[i] = Requantize((i - 128 - spec.first.zero_point) * kFactor, first);
    second_[i] = Requantize((i - 128 - spec.second.zero_point) * kFactor, second);
  }
  return true;
}

int8_t Int8Sum::operator()(int8_t first, int8_t second) const {
  const int32_t level = Requantize(int64_t{first_[first + 128]} + second_[second + 128], {multiplier_, shift_});
  const int32_t clamped = std::max(level + spec_.sum.zero_point, spec_.output_min);
  return static_cast<int8_t>(std::min(clamped, spec_.output_max));
}

void Int8Sum::FindLeastSums(int32_t low, int32_t high, int32_t* least_sums) const {
  const FixedPoint scale = {multiplier_, shift_};
  constexpr int32_t kLowest = std::numeric_limits<int32_t>::min(), kHighest = std::numeric_limits<int32_t>::max();
  const double unit = std::ldexp(static_cast<double>(multiplier_), -31 - shift_);
  *least_sums++ = kLowest;
  for (int32_t level = low + 1; level <= high; ++level) {
    const double estimate = (level - 0.5) / unit;
    if (std::abs(estimate) > 0x1p30) {
      *least_sums++ = estimate < 0 ? kLowest : kHighest;
      continue;
    }
    auto sum = static_cast<int32_t>(std::ceil(estimate));
    while (Requantize(int64_t{sum} - 1, scale) >= level) --sum;
    while (Requantize(int64_t{sum}, scale) < level) ++sum;
    *least_sums++ = sum;
  }
  *least_sums = kHighest;
}

bool Int8Sum::FindFloatSum(FloatSum* found) const {
  const double step = static_cast<double>(spec_.sum.scale);
  const auto first_scale = static_cast<float>(static_cast<double>(spec_.first.scale) / step);
  const auto second_scale = static_cast<float>(static_cast<double>(spec_.second.scale) / step);
  const int32_t zero_point = spec_.sum.zero_point;
  const int32_t low = spec_.output_min - zero_point, high = spec_.output_max - zero_point;
  if (!(std::max(first_scale, second_scale) <= kMostScale) || low > high) return false;
  NearTies ties;
  ties.low = low;
  ties.high = high;
  FindLeastSums(low, high, ties.least_sums);

  float second_products[256];
  for (int32_t k = 0; k < 256; ++k) {
    second_products[k] = static_cast<float>(k - 128 - spec_.second.zero_point) * second_scale;
  }
  *found = {first_scale, second_scale, spec_.second.zero_point, zero_point, low, high, false, 0, {}};
  const FloatSum nearest = *found;
  for (int32_t i = 0; i < 256; ++i) {
    const int32_t first = i - 128 - spec_.first.zero_point;
    const float first_product = static_cast<float>(first) * first_scale;
    const auto is_near_tie = [=](float second_product) {
      const float sum = first_product + second_product;
      return std::abs(std::abs(sum - static_cast<float>(static_cast<int32_t>(sum))) - 0.5f) < kNearTie;
    };
    int32_t near_ties = 0;  // counted first, because a loop without branches is vectorized
    for (const float second_product : second_products) near_ties += is_near_tie(second_product);
    for (int32_t k = 0; near_ties > 0; ++k) {
      if (!is_near_tie(second_products[k])) continue;
      --near_ties;
      const Pair pair = {first, k - 128 - spec_.second.zero_point, first_[i] + second_[k]};
      if (ties.count < kMostPairs) {
        ties.pairs[ties.count++] = pair;
      } else if (ties.CompareFloats(pair, nearest) != 0) {
        return false;
      }
    }
  }

  if (ties.count == kMostPairs) return ties.Check(found) && found->exceptions == 0;
  // The loop searches for scales that meet two conditions. No pair of operands needs a correction (an exception), and
  // fused multiply-adds give the same results. If no scales meet both, the loop takes the scales with the fewest
  // exceptions.
  FloatSum best = nearest;
  best.exceptions = FloatSum::kMostExceptions + 1;
  for (int distance = 0; distance <= kNeighbours; ++distance) {
    for (int i = -distance; i <= distance; ++i) {
      for (int k = -distance; k <= distance; ++k) {
        if (std::max(std::abs(i), std::abs(k)) < distance) continue;
        *found = nearest;
        found->first_scale = Move(first_scale, i);
        found->second_scale = Move(second_scale, k);
        if (!ties.Check(found)) continue;
        if (found->exceptions == 0 && found->may_fuse) return true;
        if (found->exceptions < best.exceptions) best = *found;
      }
    }
  }
  *found = best;
  return best.exceptions <= FloatSum::kMostExceptions;
}

bool Int8Product::Set(const Int8Grid& first, const Int8Grid& second, const Int8Grid& product) {
  first_zero_point_ = first.zero_point;
  second_zero_point_ = second.zero_point;
  zero_point_ = product.zero_point;
  FixedPoint scale;
  // The factor that rescales products to output levels is computed in floats, as in the reference kernel.
  if (!ToFixedPoint(static_cast<double>(first.scale * second.scale / product.scale), &scale)) return false;
  multiplier_ = scale.multiplier;
  shift_ = scale.shift;
  return true;
}

int8_t Int8Product::operator()(int8_t first, int8_t second) const {
  const int64_t product = int64_t{first - first_zero_point_} * (second - second_zero_point_);
  const int32_t level = Requantize(product, {multiplier_, shift_}) + zero_point_;
  return static_cast<int8_t>(std::min(std::max(level, -128), 127));
}

}  // namespace litebnn
