# This file is for Clang and libc++ as the PyPI package ziglang brings them, with the C library's headers for every
# target. The file needs LITEBNN_ZIG (the program), LITEBNN_CPU (the CPU to compile for) and LITEBNN_GENERIC_CPU (the CPU
# for which zig compiles libc++ when it links). LITEBNN_SYSTEM, LITEBNN_PROCESSOR and LITEBNN_ZIG_TARGET describe the
# target; LITEBNN_ZIG_TARGET is empty for this machine.
# CMake's try_compile reads this file again for its own project, so these variables are passed on.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES
     LITEBNN_ZIG LITEBNN_CPU LITEBNN_GENERIC_CPU LITEBNN_ZIG_TARGET LITEBNN_SYSTEM LITEBNN_PROCESSOR)

set(litebnn_target "")
if(LITEBNN_ZIG_TARGET)
  set(CMAKE_SYSTEM_NAME ${LITEBNN_SYSTEM})
  set(CMAKE_SYSTEM_PROCESSOR ${LITEBNN_PROCESSOR})
  set(litebnn_target -target ${LITEBNN_ZIG_TARGET})
endif()
if(LITEBNN_SYSTEM STREQUAL "Darwin")
  # zig brings the system's headers and libraries. Without this setting, CMake would ask Xcode for them.
  set(CMAKE_OSX_SYSROOT "")
  set(CMAKE_OSX_ARCHITECTURES "")
endif()
if(LITEBNN_SYSTEM STREQUAL "Windows")
  # CMake asks for a resource compiler, which no part of litebnn needs.
  set(CMAKE_RC_COMPILER ${LITEBNN_ZIG})
  set(LITEBNN_DLLTOOL ${LITEBNN_ZIG} dlltool)
endif()

# When zig links, it first compiles its libc++ for the CPU, optimization and stripping of the call, which takes up to a
# minute. Without the variable ZIG_LIB_DIR of toolchains/compilers.py, it takes twice as long. These options are passed
# to every call, also to CMake's own checks, so that one libc++ serves all targets of a kind.
#
# The ops spend no time in libc++, so it is compiled to be small, which is also quicker. A build type's option for
# compiling, such as -O3, comes after these and replaces -Os; for linking, -Os is added once more behind it. A library
# for Windows also contains zig's memcpy, which copies single bytes if it is small.
set(litebnn_optimization -Os)
if(LITEBNN_SYSTEM STREQUAL "Windows")
  set(litebnn_optimization -O3)
endif()
set(litebnn_options ${litebnn_target} -mcpu=${LITEBNN_GENERIC_CPU} ${litebnn_optimization} -s)
add_link_options(${litebnn_optimization})
add_compile_options(-mcpu=${LITEBNN_CPU})
# For older programs, headers of libc++ include many more headers than they need. Without these, the library compiles in
# two thirds of the time.
add_compile_definitions(_LIBCPP_REMOVE_TRANSITIVE_INCLUDES)
# zig knows CPUs and their features, but not the option -march.
set(LITEBNN_DOTPROD_OPTION -mcpu=${LITEBNN_GENERIC_CPU}+dotprod)

# The program zig is compiler and archiver in one. Its first argument says which of these it acts as.
set(CMAKE_C_COMPILER ${LITEBNN_ZIG} cc ${litebnn_options})
set(CMAKE_CXX_COMPILER ${LITEBNN_ZIG} c++ ${litebnn_options})
set(CMAKE_AR ${LITEBNN_ZIG} CACHE FILEPATH "")
set(CMAKE_RANLIB ${LITEBNN_ZIG} CACHE FILEPATH "")
# CMake reads zig_archives.cmake after its own rules for the system, which would otherwise replace the rules of that
# file.
set(CMAKE_USER_MAKE_RULES_OVERRIDE ${CMAKE_CURRENT_LIST_DIR}/zig_archives.cmake)

set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
