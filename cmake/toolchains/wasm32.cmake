# SPDX-License-Identifier: MIT
# WebAssembly without WASI, Emscripten or a C library: Debian's clang-19 and lld-19.
#
#     cmake --preset wasm32 && cmake --build --preset wasm32
#
# The archiver need not be LLVM's (package llvm-19, which clang-19 does not pull in): wasm-ld
# reads the members of an archive itself, so the index that GNU ar cannot write is not missed.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR wasm32)

set(CMAKE_C_COMPILER clang-19)
set(CMAKE_C_COMPILER_TARGET wasm32)
find_program(CMAKE_AR NAMES llvm-ar-19 llvm-ar ar REQUIRED)
find_program(CMAKE_RANLIB NAMES llvm-ranlib-19 llvm-ranlib ranlib REQUIRED)

set(CMAKE_C_FLAGS_INIT "-ffreestanding -nostdlib")
set(CMAKE_EXECUTABLE_SUFFIX_C .wasm)

# There is nothing to link a test program with.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)

# Programs come from the machine that builds, headers and libraries never.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
