# SPDX-License-Identifier: MIT
# Flags for the code of this repository only: `sinew_flags` is linked PRIVATE, so that a
# program that uses Sinew keeps its own warnings.
add_library(sinew_flags INTERFACE)
target_compile_features(sinew_flags INTERFACE c_std_11)
target_compile_options(sinew_flags INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes
    -Wimplicit-fallthrough -Wvla
    # __FILE__ in messages is the path inside the repository, on every machine alike.
    "-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=")
# For x86-64 gcc clears what is larger than some lines by `rep stos`, which takes 13 ns to begin: as
# long as a fiber's switch there and back. Structs of some hundred bytes are cleared in many a wait.
include(CheckCCompilerFlag)
set(sinew_clear -mmemset-strategy=vector_loop:1024:noalign,libcall:-1:noalign)
check_c_compiler_flag(${sinew_clear} SINEW_HAS_MEMSET_STRATEGY)
if(SINEW_HAS_MEMSET_STRATEGY)
    target_compile_options(sinew_flags INTERFACE ${sinew_clear})
endif()
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(SINEW_WERROR)
    target_compile_options(sinew_flags INTERFACE -Werror)
endif()

if(SINEW_SANITIZE)
    add_compile_options(-fsanitize=${SINEW_SANITIZE} -fno-omit-frame-pointer -g)
    add_link_options(-fsanitize=${SINEW_SANITIZE})
    if(SINEW_SANITIZE STREQUAL "undefined")
        add_compile_options(-fno-sanitize-recover=all)
    endif()
endif()

if(SINEW_HOSTED)
    find_package(Threads REQUIRED)
endif()
