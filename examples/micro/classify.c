/* Samples in, classes out, on a board without an operating system. samples.h has their types. */
#include <string.h>

#include "board.h"
#include "network.h"
#include "samples.h"

static Input input[NETWORK_INPUT_SIZE];
static Output output[NETWORK_OUTPUT_SIZE];

static int32_t largest(const Output* values, int32_t count) {
  int32_t found = 0;
  for (int32_t i = 1; i < count; ++i) found = values[i] > values[found] ? i : found;
  return found;
}

int main(void) {
  for (int32_t sample = 0; sample < SAMPLES; ++sample) {
    memcpy(input, samples + sample * NETWORK_INPUT_SIZE, sizeof input);
    board_start_counting();
    network_run(input, output);
    const uint32_t instructions = board_counted();
    board_print("class ");
    board_print_number(largest(output, NETWORK_OUTPUT_SIZE));
    board_print(" instructions ");
    board_print_number((int32_t)instructions);
    board_print("\n");
  }
  board_print("stack ");
  board_print_number((int32_t)board_stack_bytes());
  board_print("\n");
  return 0;
}
