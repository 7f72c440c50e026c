// What stands around each function of assembly. Its symbol stays inside of the library.

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
