/* Runs the self-test of an exported network on a board, and prints its stack and the instructions of each step.
 *
 * The network is compiled with -DLITEBNN_PORT and -DLITEBNN_PROFILE.
 */
#include "board.h"

enum { kSteps = 256 };

int litebnn_selftest(void);
void litebnn_port_print(const char* text);
uint32_t litebnn_port_ticks(void);
void litebnn_profile(int32_t step);

static uint32_t counts[kSteps], before;
static int32_t steps;

void litebnn_port_print(const char* text) { board_print(text); }

/* A run begins, or has ended. */
uint32_t litebnn_port_ticks(void) {
  before = board_counted();
  return before;
}

void litebnn_profile(int32_t step) {
  const uint32_t now = board_counted();
  if (step < kSteps) counts[step] = now - before;
  if (step >= steps) steps = step + 1;
  before = board_counted();
}

int main(void) {
  board_start_counting();
  const int failed = litebnn_selftest();
  for (int32_t step = 0; step < steps && step < kSteps; ++step) {
    board_print("step ");
    board_print_number(step);
    board_print(": ");
    board_print_number((int32_t)counts[step]);
    board_print(" instructions\n");
  }
  board_print("stack ");
  board_print_number((int32_t)board_stack_bytes());
  board_print("\n");
  return failed;
}
