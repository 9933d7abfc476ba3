# SPDX-License-Identifier: MIT
# The io_uring driver, or its absence: liburing 2.3 or later decides, which is looked for by
# linking against it, so that a cross build does not take the host's. SINEW_URING=OFF does without.
#
# The archive's users need it too. Inside this build it is a path, installed it is a bare name:
# whoever links finds his own.
option(SINEW_URING "Build the io_uring driver, if liburing is found" ON)

set(uring_sources io/uring/none.c)
set(uring_libraries "")
set(uring_includes "")
set(SINEW_PRIVATE_LIBS "")
if(SINEW_URING)
    include(CMakePushCheckState)
    include(CheckSymbolExists)
    find_path(LIBURING_INCLUDE_DIR liburing.h)
    find_library(LIBURING_LIBRARY uring)
    mark_as_advanced(LIBURING_INCLUDE_DIR LIBURING_LIBRARY)
    if(LIBURING_INCLUDE_DIR AND LIBURING_LIBRARY)
        cmake_push_check_state(RESET)
        set(CMAKE_REQUIRED_DEFINITIONS -D_GNU_SOURCE)
        set(CMAKE_REQUIRED_INCLUDES ${LIBURING_INCLUDE_DIR})
        set(CMAKE_REQUIRED_LIBRARIES ${LIBURING_LIBRARY})
        check_symbol_exists(io_uring_enter2 liburing.h SINEW_HAVE_LIBURING)
        cmake_pop_check_state()
    endif()
endif()
if(SINEW_URING AND SINEW_HAVE_LIBURING)
    set(uring_sources io/uring/detour.c io/uring/prep.c io/uring/ring.c io/uring/uring.c)
    set(uring_libraries $<BUILD_INTERFACE:${LIBURING_LIBRARY}> $<INSTALL_INTERFACE:uring>)
    set(uring_includes ${LIBURING_INCLUDE_DIR})
    set(SINEW_PRIVATE_LIBS " -luring")
else()
    message(STATUS "Without io_uring: liburing 2.3 was not found or not wanted")
endif()
set(SINEW_PRIVATE_LIBS "${SINEW_PRIVATE_LIBS}" PARENT_SCOPE)
