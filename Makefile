# SPDX-License-Identifier: MIT
# A thin front to CMake (CMakeLists.txt, CMakePresets.json are the truth).
#
#   make            the library, with gcc and cmake only
#   make run        sets up, builds, shows the examples at work: HTTP on loopback, chat, ...
#   make test       sets up, builds, tests; names what it had to skip and how to enable it
#   make test-full  the same with cross compilers, emulators and a browser: nothing is skipped
#   make bench      the same work on Sinew and its peers, in below ten minutes; BENCH_ARGS=
#   make bench-full all of it, with curves: some hours; the report is docs/benchmarks/compare.html
#   make bench-micro  single operations of Sinew; MICRO_ARGS=
#   make bench-echo echo servers side by side with peers, below two minutes; ECHO_ARGS= for the rest
#   make check-style, make format, make install PREFIX=/usr/local, make clean

PREFIX ?= /usr/local
JOBS   ?= $(shell nproc 2>/dev/null || echo 2)
BUILD  := build/release
ECHO_ARGS ?= --quick

.PHONY: all lib run test test-full bench bench-full bench-micro bench-echo check-style format install clean

all: lib

$(BUILD)/CMakeCache.txt: CMakePresets.json
	cmake --preset release

lib: $(BUILD)/CMakeCache.txt
	cmake --build $(BUILD) -j $(JOBS) --target sinew sinew-shared sinew-level0

run:
	@tools/setup core
	@$(MAKE) --no-print-directory $(BUILD)/CMakeCache.txt
	@cmake --build $(BUILD) -j $(JOBS) --target examples
	@tools/run-examples $(BUILD)

test:
	@tools/setup core test
	@tools/test

test-full:
	@tools/setup core test clang cross
	@SINEW_TEST_STRICT=1 tools/test

bench bench-full:
	@tools/setup core bench
	@tools/setup peers || echo "bench: some peers will be missing"
	@$(MAKE) --no-print-directory $(BUILD)/CMakeCache.txt
	@cmake --build $(BUILD) -j $(JOBS) --target bench-yard-programs
	@bench/compare --build $(BUILD) $(if $(filter bench,$@),--quick) $(BENCH_ARGS)

bench-micro:
	@tools/setup core bench
	@$(MAKE) --no-print-directory $(BUILD)/CMakeCache.txt
	@cmake --build $(BUILD) -j $(JOBS)
	@for b in $(BUILD)/bench/micro_*; do $$b $(MICRO_ARGS) || exit 1; done

bench-echo:
	@tools/setup core bench
	@$(MAKE) --no-print-directory $(BUILD)/CMakeCache.txt
	@cmake --build $(BUILD) -j $(JOBS) --target bench-echo-programs
	@bench/macro/echo.py --build $(BUILD) $(ECHO_ARGS)

check-style:
	@tools/setup test clang
	@tools/tidy
	@tools/format --check

format:
	@tools/setup clang
	@tools/format

install: lib
	cmake --install $(BUILD) --prefix $(PREFIX)

clean:
	rm -rf build
