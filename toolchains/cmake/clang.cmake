# This file is for Clang with another system's headers and libraries: MinGW's for Windows, or Xcode's for macOS. The
# file needs the variables LITEBNN_TRIPLE, LITEBNN_SYSTEM and LITEBNN_PROCESSOR.
set(CMAKE_SYSTEM_NAME ${LITEBNN_SYSTEM})
set(CMAKE_SYSTEM_PROCESSOR ${LITEBNN_PROCESSOR})
# try_compile reads this file again for its own project, so these variables are passed on.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES LITEBNN_TRIPLE LITEBNN_SYSTEM LITEBNN_PROCESSOR)

set(CMAKE_C_COMPILER_TARGET ${LITEBNN_TRIPLE})
set(CMAKE_CXX_COMPILER_TARGET ${LITEBNN_TRIPLE})
if(LITEBNN_SYSTEM STREQUAL "Windows")
  # The programs and libraries contain the C++ library and the threads library, because Windows has neither.
  foreach(kind EXE SHARED)
    set(CMAKE_${kind}_LINKER_FLAGS_INIT "-fuse-ld=lld -static -s")
  endforeach()
  # The library `ssp` has the functions of the stack protector.
  link_libraries(ssp)
  # GNU's C++ library up to version 12 calls a deprecated function in std::stable_sort, of which Clang warns.
  add_compile_options(-Wno-deprecated-declarations)
  find_program(LITEBNN_DLLTOOL NAMES ${LITEBNN_TRIPLE}-dlltool llvm-dlltool REQUIRED)
  set(CMAKE_FIND_ROOT_PATH /usr/${LITEBNN_TRIPLE})
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
