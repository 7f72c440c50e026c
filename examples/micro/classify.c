/* Digits in, classes out, on a board without an operating system. */
#include <string.h>

#include "board.h"
#include "digits.h"
#include "images.h"

static float input[DIGITS_INPUT_SIZE], output[DIGITS_OUTPUT_SIZE];

static int32_t largest(const float* values, int32_t count) {
  int32_t found = 0;
  for (int32_t i = 1; i < count; ++i) found = values[i] > values[found] ? i : found;
  return found;
}

int main(void) {
  for (int32_t image = 0; image < IMAGES; ++image) {
    memcpy(input, images + image * DIGITS_INPUT_SIZE, sizeof input);
    board_start_counting();
    digits_run(input, output);
    const uint32_t instructions = board_counted();
    board_print("class ");
    board_print_number(largest(output, DIGITS_OUTPUT_SIZE));
    board_print(" instructions ");
    board_print_number((int32_t)instructions);
    board_print("\n");
  }
  board_print("stack ");
  board_print_number((int32_t)board_stack_bytes());
  board_print("\n");
  return 0;
}
