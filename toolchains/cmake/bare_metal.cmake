# This file is for the GNU cross compiler of a microcontroller, a program on the PATH called TRIPLE-gcc. The file needs
# the variables LITEBNN_TRIPLE and LITEBNN_PROCESSOR; LITEBNN_CPU_FLAGS is optional.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR ${LITEBNN_PROCESSOR})
# CMake tests the compiler with a library, because linking a program needs a linker script.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES LITEBNN_TRIPLE LITEBNN_PROCESSOR LITEBNN_CPU_FLAGS)

set(CMAKE_C_COMPILER ${LITEBNN_TRIPLE}-gcc)
set(CMAKE_C_FLAGS_INIT "${LITEBNN_CPU_FLAGS}")
set(CMAKE_C_FLAGS_RELEASE_INIT "-O2")
