/* Runs @NAME@ on the vectors of @NAME@_vectors.h, which TensorFlow Lite's reference kernels computed, and prints what
 * differs and how long a run takes.
 *
 * On a system with a C library, compile it as it is. On a board without one, define LITEBNN_PORT and give the two
 * functions that are declared below.
 */
#include "@NAME@.h"
#include "@NAME@_vectors.h"

#ifdef LITEBNN_PORT
void litebnn_port_print(const char* text);
uint32_t litebnn_port_ticks(void); /* rises while a run takes place */
#else
#include <stdio.h>
#include <time.h>
static void litebnn_port_print(const char* text) { fputs(text, stdout); }
static uint32_t litebnn_port_ticks(void) { return (uint32_t)((double)clock() * (1e6 / CLOCKS_PER_SEC)); }
#endif

static void print_number(uint32_t value) {
  char digits[12];
  char* at = digits + 11;
  *at = 0;
  do {
    *--at = (char)('0' + value % 10);
    value /= 10;
  } while (value);
  litebnn_port_print(at);
}

/* A difference above the tolerance, or a number that is none, is wrong. */
static uint32_t wrong_floats(const float* results, const float* expected, int32_t count, float tolerance) {
  uint32_t wrong = 0;
  for (int32_t i = 0; i < count; ++i) {
    const float difference = results[i] > expected[i] ? results[i] - expected[i] : expected[i] - results[i];
    wrong += !(difference <= tolerance) && !(results[i] != results[i] && expected[i] != expected[i]);
  }
  return wrong;
}

static uint32_t wrong_bytes(const void* results, const void* expected, int32_t count) {
  const unsigned char *got = results, *wanted = expected;
  uint32_t wrong = 0;
  for (int32_t i = 0; i < count; ++i) wrong += got[i] != wanted[i];
  return wrong;
}

@BUFFERS@
int main(void) {
  uint32_t wrong = 0;
  for (int32_t vector = 0; vector < @UPPER@_VECTORS; ++vector) {
    const uint32_t start = litebnn_port_ticks();
    @NAME@_run(@ARGUMENTS@);
    const uint32_t ticks = litebnn_port_ticks() - start;
    uint32_t wrong_here = 0;
@CHECKS@    litebnn_port_print("vector ");
    print_number((uint32_t)vector);
    litebnn_port_print(": ");
    print_number(wrong_here);
    litebnn_port_print(" wrong, ");
    print_number(ticks);
    litebnn_port_print(" ticks\n");
    wrong += wrong_here;
  }
  /* Unused where every output is of another type. */
  (void)wrong_floats;
  (void)wrong_bytes;
  litebnn_port_print(wrong ? "FAILED\n" : "passed\n");
  return wrong != 0;
}
