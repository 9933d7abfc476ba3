# SPDX-License-Identifier: MIT
# Cortex-M3 without an operating system and without a C library: Debian's gcc-arm-none-eabi.
#
#     cmake --preset cortex-m3 && cmake --build --preset cortex-m3
#
# "Generic" is CMake's word for bare metal; the build then leaves out all that needs a system.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR cortex-m3)

set(CMAKE_C_COMPILER arm-none-eabi-gcc)
find_program(CMAKE_SIZE arm-none-eabi-size)

# Sections of their own let --gc-sections drop what a program does not call.
set(CMAKE_C_FLAGS_INIT
    "-mcpu=cortex-m3 -mthumb -ffreestanding -nostdlib -ffunction-sections -fdata-sections")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,--gc-sections")
set(CMAKE_EXECUTABLE_SUFFIX_C .elf)

# There is nothing to link a test program with.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)

# Programs come from the machine that builds, headers and libraries never.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
