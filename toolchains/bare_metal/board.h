/* What a program on an emulated board without an operating system may use. */
#ifndef LITEBNN_BOARD_H
#define LITEBNN_BOARD_H

#include <stdint.h>

/* Prints through the emulator. */
void board_print(const char* text);
void board_print_number(int32_t number);

/* Counts instructions, as QEMU executes them with `-icount shift=0`, at most 500 million. The number is exact on
 * RISC-V; on Arm it is rounded down to a multiple of 40, or about 31 on the Cortex-M55. */
void board_start_counting(void);
uint32_t board_counted(void);

/* The most bytes of stack that were in use since the program began. */
uint32_t board_stack_bytes(void);

/* Ends the emulation; QEMU's exit status is 0 or 1. */
void board_exit(int failed);

#endif
