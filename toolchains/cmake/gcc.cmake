# This file is for the GNU cross compiler of the Debian package g++-TRIPLE, or any other compiler on the PATH called
# TRIPLE-g++. The file needs the variables LITEBNN_TRIPLE and LITEBNN_PROCESSOR; LITEBNN_CPU_FLAGS is optional.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${LITEBNN_PROCESSOR})
# try_compile reads this file again for its own project, so these variables are passed on.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES LITEBNN_TRIPLE LITEBNN_PROCESSOR LITEBNN_CPU_FLAGS)

set(CMAKE_C_COMPILER ${LITEBNN_TRIPLE}-gcc)
set(CMAKE_CXX_COMPILER ${LITEBNN_TRIPLE}-g++)
set(CMAKE_C_FLAGS_INIT "${LITEBNN_CPU_FLAGS}")
set(CMAKE_CXX_FLAGS_INIT "${LITEBNN_CPU_FLAGS}")

set(CMAKE_FIND_ROOT_PATH /usr/${LITEBNN_TRIPLE})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
