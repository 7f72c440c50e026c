# This file is for Clang with another system's headers and libraries: MinGW's for Windows, or Xcode's for macOS.
# It needs LITEBNN_TRIPLE, LITEBNN_SYSTEM and LITEBNN_PROCESSOR.
set(CMAKE_SYSTEM_NAME ${LITEBNN_SYSTEM})
set(CMAKE_SYSTEM_PROCESSOR ${LITEBNN_PROCESSOR})
# try_compile reads this file again, in a project of its own.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES LITEBNN_TRIPLE LITEBNN_SYSTEM LITEBNN_PROCESSOR)

set(CMAKE_C_COMPILER_TARGET ${LITEBNN_TRIPLE})
set(CMAKE_CXX_COMPILER_TARGET ${LITEBNN_TRIPLE})
if(LITEBNN_SYSTEM STREQUAL "Windows")
  # Programs and libraries carry the C++ library and the threads, which Windows does not have.
  foreach(kind EXE SHARED)
    set(CMAKE_${kind}_LINKER_FLAGS_INIT "-fuse-ld=lld -static -s")
  endforeach()
  # The stack protector's functions.
  link_libraries(ssp)
  # GNU's C++ library up to 12 calls what it deprecates in std::stable_sort, which Clang reports.
  add_compile_options(-Wno-deprecated-declarations)
  find_program(LITEBNN_DLLTOOL NAMES ${LITEBNN_TRIPLE}-dlltool llvm-dlltool REQUIRED)
  set(CMAKE_FIND_ROOT_PATH /usr/${LITEBNN_TRIPLE})
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
