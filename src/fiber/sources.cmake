# SPDX-License-Identifier: MIT
# Which files make up the fiber room: by processor, by sanitizer, and whether valgrind's header
# is there. SINEW_PORTABLE_SWITCH=ON takes the C library's contexts instead of assembly.
option(SINEW_PORTABLE_SWITCH "Switch contexts by ucontext instead of assembly" OFF)

if(SINEW_PORTABLE_SWITCH)
    set(fiber_sources fiber/arch/ucontext.c fiber/arch/leave.c)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    set(fiber_sources fiber/arch/x86_64_sysv.S)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    set(fiber_sources fiber/arch/aarch64.S fiber/arch/leave.c)
elseif(CMAKE_SYSTEM_PROCESSOR STREQUAL "riscv64")
    set(fiber_sources fiber/arch/riscv64.S fiber/arch/leave.c)
else()
    set(fiber_sources fiber/arch/ucontext.c fiber/arch/leave.c)
endif()

set(fiber_definitions "")
if(SINEW_SANITIZE STREQUAL "address")
    list(APPEND fiber_sources fiber/sanitize_asan.c)
    set(fiber_definitions SINEW_FIBER_NOTES)
elseif(SINEW_SANITIZE STREQUAL "thread")
    list(APPEND fiber_sources fiber/sanitize_tsan.c)
    set(fiber_definitions SINEW_FIBER_NOTES)
endif()

include(CheckIncludeFile)
check_include_file(valgrind/valgrind.h SINEW_HAVE_VALGRIND_H)
if(SINEW_HAVE_VALGRIND_H)
    list(APPEND fiber_sources fiber/valgrind.c)
else()
    list(APPEND fiber_sources fiber/valgrind_none.c)
endif()
