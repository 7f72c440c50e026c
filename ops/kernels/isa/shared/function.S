// Directives before and after each assembly function. Its symbol is not exported from the library.

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
