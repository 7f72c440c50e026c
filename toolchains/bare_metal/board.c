/* Start-up, printing and counting on QEMU's boards, by semihosting. */
#include "board.h"

extern uint32_t stack_top[], stack_end[], data_begin[], data_end[], data_load[], bss_begin[], bss_end[];
extern int main(void);
void board_start(void);

enum { kWrite = 0x04, kExitExtended = 0x20, kApplicationExit = 0x20026, kUnused = 0x5A5A5A5A };

#ifdef __riscv

static int32_t semihost(int32_t operation, const void* argument) {
  register int32_t a0 __asm__("a0") = operation;
  register const void* a1 __asm__("a1") = argument;
  /* The sequence of three instructions may not be compressed, nor cross a page. */
  __asm__ volatile(".option push\n.option norvc\n.p2align 4\nslli x0, x0, 0x1f\nebreak\nsrai x0, x0, 7\n.option pop"
                   : "+r"(a0)
                   : "r"(a1)
                   : "memory");
  return a0;
}

static uint32_t begun;

static uint32_t retired(void) {
  uint32_t count;
  __asm__ volatile(".option push\n.option arch, +zicsr\ncsrr %0, minstret\n.option pop" : "=r"(count));
  return count;
}

void board_start_counting(void) { begun = retired(); }

uint32_t board_counted(void) { return retired() - begun; }

__attribute__((naked, used, section(".vectors"))) void board_reset(void) {
  __asm__ volatile("la sp, stack_top\nj board_start");
}

#else

#define SYSTICK ((volatile uint32_t*)0xE000E010u) /* control, reload, current */
#define COPROCESSORS (*(volatile uint32_t*)0xE000ED88u)

static int32_t semihost(int32_t operation, const void* argument) {
  register int32_t r0 __asm__("r0") = operation;
  register const void* r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

void board_start_counting(void) {
  SYSTICK[1] = 0xFFFFFFu;
  SYSTICK[2] = 0;
  SYSTICK[0] = 5;
  while (SYSTICK[2] == 0) {
  }
}

/* One instruction takes a nanosecond of the emulated time, in which the timer counts down. */
uint32_t board_counted(void) {
  const uint32_t ticks = 0xFFFFFFu - SYSTICK[2];
  return (uint32_t)((uint64_t)ticks * 1000000000u / BOARD_HERTZ);
}

static void reset(void) {
  COPROCESSORS |= 0xFu << 20; /* floating point and MVE */
  __asm__ volatile("dsb\nisb");
  board_start();
}

__attribute__((section(".vectors"), used)) static const void* const vectors[] = {
    stack_top, (const void*)reset, (const void*)board_exit, (const void*)board_exit};
#endif

/* Not inlined, so that the loop that fills the stack knows where it is. */
__attribute__((noinline)) static void prepare_memory(void) {
  uint32_t* from = data_load;
  for (uint32_t* to = data_begin; to < data_end;) *to++ = *from++;
  for (uint32_t* to = bss_begin; to < bss_end;) *to++ = 0;
  /* The words below this function's own frame. */
  const uintptr_t end = (uintptr_t)__builtin_frame_address(0) - 64;
  for (volatile uint32_t* to = stack_end; (uintptr_t)to < end;) *to++ = kUnused;
}

void board_start(void) {
  prepare_memory();
  board_exit(main());
}

void board_print(const char* text) { semihost(kWrite, text); }

void board_print_number(int32_t number) {
  char digits[12], *first = digits + 11;
  uint32_t rest = number < 0 ? 0u - (uint32_t)number : (uint32_t)number;
  *first = 0;
  do {
    *--first = (char)('0' + rest % 10);
    rest /= 10;
  } while (rest);
  if (number < 0) *--first = '-';
  board_print(first);
}

uint32_t board_stack_bytes(void) {
  const uint32_t* word = stack_end;
  while (word < stack_top && *word == (uint32_t)kUnused) ++word;
  return (uint32_t)(stack_top - word) * 4u;
}

void board_exit(int failed) {
  const uint32_t status[2] = {kApplicationExit, (uint32_t)(failed != 0)};
  semihost(kExitExtended, status);
  for (;;) {
  }
}
