# SPDX-License-Identifier: MIT
# Installation: headers, archives, shared library, pkg-config files, CMake package.
include(CMakePackageConfigHelpers)

set_target_properties(sinew-level0 PROPERTIES EXPORT_NAME level0)
install(TARGETS sinew sinew-shared sinew-level0 EXPORT sinew-targets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/sinew DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sinew)
install(EXPORT sinew-targets NAMESPACE sinew:: DESTINATION ${package_dir})
configure_package_config_file(cmake/sinew-config.cmake.in sinew-config.cmake
    INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(sinew-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/sinew-config.cmake ${PROJECT_BINARY_DIR}/sinew-config-version.cmake
    DESTINATION ${package_dir})

configure_file(cmake/sinew.pc.in sinew.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/sinew.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
