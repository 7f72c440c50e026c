// The macros have the directives that begin and end an assembly function. The library does not export the function's
// symbol.

#if defined(__APPLE__)
.macro begin name
.globl _\name
.private_extern _\name
.p2align 4
_\name\():
.endm

.macro end name
.endm
#else
.macro begin name
.globl \name
.hidden \name
.type \name, %function
.p2align 4
\name\():
.endm

.macro end name
.size \name, . - \name
.endm
#endif
