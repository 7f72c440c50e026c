/* The exponential function on float, within 1e-7 of the result, so that no mathematical library is linked. */
#ifndef LITEBNN_EXPONENTIAL_H
#define LITEBNN_EXPONENTIAL_H

#include <stdint.h>
#include <string.h>

/* exp(x) = 2^n * exp(r) with |r| at most ln(2) / 2; the polynomial is Cephes' expf. */
static inline float litebnn_exp(float x) {
  if (x > 88.72283f) x = 88.72283f;
  if (x < -87.33654f) return 0.0f;
  const float scaled = x * 1.44269504f;
  const int32_t n = (int32_t)(scaled + (scaled < 0.0f ? -0.5f : 0.5f));
  const float r = (x - (float)n * 0.693359375f) + (float)n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  /* The power is made in two factors, because 2^128 alone is no float. */
  const int32_t half = n / 2;
  const uint32_t bits[2] = {(uint32_t)(half + 127) << 23, (uint32_t)(n - half + 127) << 23};
  float powers[2];
  memcpy(powers, bits, sizeof powers);
  return p * powers[0] * powers[1];
}

#endif
