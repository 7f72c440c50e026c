# The development kit that `cmake --install` makes: headers, the shared and the static library, and files for CMake's
# find_package and for pkg-config. All paths in it are relative, so that the folder may be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# This archive contains everything that programs that link the ops need. The libraries from which it is made are
# used only in this build.
add_library(litebnn_static STATIC ${LIBRARY_OBJECTS})
set_target_properties(litebnn_static PROPERTIES OUTPUT_NAME litebnn LINKER_LANGUAGE CXX)
target_link_libraries(litebnn_static PUBLIC Threads::Threads ${CMAKE_DL_LIBS})
foreach(kind litebnn litebnn_static)
  target_include_directories(${kind} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()

if(LITEBNN_VERSIONED_SONAME)
  # The first number of the version changes when programs must be compiled again.
  set_target_properties(litebnn PROPERTIES VERSION 1.${LITEBNN_VERSION} SOVERSION 1)
endif()

install(TARGETS litebnn EXPORT litebnnTargets COMPONENT runtime
  LIBRARY NAMELINK_COMPONENT development
  ARCHIVE COMPONENT development)
install(TARGETS litebnn_static EXPORT litebnnTargets ARCHIVE COMPONENT development)
install(DIRECTORY include/litebnn DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
  FILES_MATCHING PATTERN "*.h")

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/litebnn)
install(EXPORT litebnnTargets NAMESPACE litebnn:: DESTINATION ${package} COMPONENT development)
configure_package_config_file(cmake/litebnnConfig.cmake.in ${PROJECT_BINARY_DIR}/litebnnConfig.cmake
  INSTALL_DESTINATION ${package})
# Before 1.0, a new minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/litebnnConfigVersion.cmake
  VERSION ${LITEBNN_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/litebnnConfig.cmake ${PROJECT_BINARY_DIR}/litebnnConfigVersion.cmake
  DESTINATION ${package} COMPONENT development)

# The C++ library that a program in C has to name if it links the archive.
set(LITEBNN_CXX_LIBRARY -lstdc++)
if("c++" IN_LIST CMAKE_CXX_IMPLICIT_LINK_LIBRARIES)
  set(LITEBNN_CXX_LIBRARY -lc++)
endif()
file(RELATIVE_PATH LITEBNN_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
foreach(name litebnn litebnn-static)
  configure_file(cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endforeach()
