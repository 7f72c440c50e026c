# This file is for Clang and libc++ as the PyPI package ziglang brings them, with the C library's headers for every
# target. It needs LITEBNN_ZIG (the program), LITEBNN_CPU (what to compile for) and LITEBNN_GENERIC_CPU (what zig
# compiles its own libc++ for, when it links). LITEBNN_TRIPLE (empty: this machine), LITEBNN_PROCESSOR and LITEBNN_GLIBC say the rest.
# try_compile reads this file again, in a project of its own.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES
     LITEBNN_ZIG LITEBNN_CPU LITEBNN_GENERIC_CPU LITEBNN_TRIPLE LITEBNN_PROCESSOR LITEBNN_GLIBC)

set(litebnn_target "")
if(LITEBNN_TRIPLE)
  set(CMAKE_SYSTEM_NAME Linux)
  set(CMAKE_SYSTEM_PROCESSOR ${LITEBNN_PROCESSOR})
  set(litebnn_target -target ${LITEBNN_TRIPLE}.${LITEBNN_GLIBC})
endif()

# zig compiles a libc++ for each CPU, optimisation and stripping that it is asked to link for, a minute's work. The
# options that decide are given to every call, CMake's own trials too, so that one serves all targets of a kind.
set(litebnn_options ${litebnn_target} -mcpu=${LITEBNN_GENERIC_CPU} -O3 -s)
add_compile_options(-mcpu=${LITEBNN_CPU})

# One program does all: its first argument says what it is to be.
set(CMAKE_C_COMPILER ${LITEBNN_ZIG} cc ${litebnn_options})
set(CMAKE_CXX_COMPILER ${LITEBNN_ZIG} c++ ${litebnn_options})
set(CMAKE_AR ${LITEBNN_ZIG} CACHE FILEPATH "")
set(CMAKE_RANLIB ${LITEBNN_ZIG} CACHE FILEPATH "")
foreach(language C CXX)
  set(CMAKE_${language}_ARCHIVE_CREATE "<CMAKE_AR> ar qc <TARGET> <LINK_FLAGS> <OBJECTS>")
  set(CMAKE_${language}_ARCHIVE_APPEND "<CMAKE_AR> ar q <TARGET> <LINK_FLAGS> <OBJECTS>")
  set(CMAKE_${language}_ARCHIVE_FINISH "<CMAKE_RANLIB> ranlib <TARGET>")
endforeach()

set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
