#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh ELF - run the firmware in QEMU; its log is the output, its result the exit status.
#
# -icount makes time a count of instructions (32 ns each, about what the real processor
# takes), so that every run is the same. sleep=off lets time jump when the processor sleeps:
# a second of blinking takes a fraction of one.
set -eu

if [ $# -ne 1 ]; then
    echo "usage: run.sh ELF" >&2
    exit 2
fi

exec qemu-system-arm -M mps2-an385 -display none -monitor none -serial stdio \
    -icount shift=5,align=off,sleep=off -rtc clock=vm \
    -semihosting-config enable=on,target=native -kernel "$1" </dev/null
