/* The exponential function of floats with a relative error of about 1e-7. With it, programs need no mathematical
 * library. */
#ifndef LITEBNN_EXPONENTIAL_H
#define LITEBNN_EXPONENTIAL_H

#include <stdint.h>
#include <string.h>

/* Computes exp(x) = 2^n * exp(r), where |r| is at most ln(2) / 2. The polynomial for exp(r) is that of expf in the
 * Cephes library. */
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
  /* The factor 2^n is computed as a product of two powers, because 2^128 exceeds the range of floats. */
  const int32_t half = n / 2;
  const uint32_t bits[2] = {(uint32_t)(half + 127) << 23, (uint32_t)(n - half + 127) << 23};
  float powers[2];
  memcpy(powers, bits, sizeof powers);
  return p * powers[0] * powers[1];
}

#endif
