# MSVC, and Clang for MSVC's ABI, do not know the GNU attributes and assembly of litebnn's sources.
if(MSVC OR "${CMAKE_CXX_SIMULATE_ID}" STREQUAL "MSVC")
  message(FATAL_ERROR "MSVC cannot build litebnn: expected clang or zig for MinGW (llvm-mingw, MSYS2's CLANG64, or invoke build --target=windows-x86_64)")
endif()
