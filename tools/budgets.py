#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""budgets - what each hot path executes: instructions, and the atomics among them.

    tools/budgets.py BUILD [PATH ...]     counts the paths of bench/macro/budget.c, and prints
    tools/benchcmp --instructions BUILD --record "why"    writes docs/internals/instruction-budgets.md

One run of callgrind for each path says how often each instruction was executed. Two things follow
from it. *Locked* instructions (lock ..., xchg with memory, mfence) are found in the disassembly: they
are what a read-modify-write, a fence or a sequentially consistent store becomes on x86-64. And by the
line table each instruction belongs to a line of the source, or to a chain of them where functions
are inlined; of the lines in which a sni_atomic_ operation stands, it is told how often they were
executed, with its order. So acquire loads and release stores are seen, too, which are plain moves
here and cost something elsewhere.

A line is counted by the instruction of it that was executed most often, for each place in which it
is inlined; for what must lock, only instructions that do. If a locked instruction belongs to no line
with an atomic operation, or to two, the sum by lines differs, and that is an error."""

import collections
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
DOC = os.path.join(ROOT, "docs", "internals", "instruction-budgets.md")
BATCH = 64
ROUNDS = 20
WORTH_TELLING = 0.02  # of an operation
FUNCTIONS_TOLD = 8

PATHS = {
    "spawn": "spawn a fiber",
    "spawn_coro": "spawn a coroutine task",
    "run_and_end": "switch to a new fiber, run nothing, end",
    "join": "join a task that has ended",
    "join_waits": "join a task that has yet to run: wait, it runs and ends, go on",
    "yield": "yield to another fiber",
    "yield_coro": "yield to another coroutine task: queued, picked and polled again",
    "send": "send, there is room",
    "recv": "receive, there is something",
    "send_wakes": "send to a receiver that waits",
    "wake": "release a semaphore at which a fiber waits",
    "wait": "go on after that, and wait again",
    "wait_until": "the same with a deadline",
    "lock": "lock a free mutex",
    "unlock": "unlock it, nobody waits",
    "unlock_wakes": "unlock it, a fiber waits",
    "timer_insert": "set a timer (the time is read)",
    "timer_cancel": "cancel it",
    "echo_fiber_epoll": "read 64 bytes of a TCP connection and write them back, by a fiber, epoll",
    "echo_coro_epoll": "the same by a coroutine that waits until it can read",
    "echo_fiber_uring": "the same by a fiber, io_uring",
    "echo_coro_uring": "the same by a coroutine, io_uring",
}

Site = collections.namedtuple("Site", "operation order function file")
Budget = collections.namedtuple("Budget", "instructions locked sites functions")


class Trouble(Exception):
    """Why nothing could be counted."""


# ---- callgrind ----------------------------------------------------------------------------------

def read_profile(text, program):
    """address: executions, of the program's own code; and instructions of all objects."""
    executed, everything = collections.Counter(), 0
    current, is_call = "", False
    for line in text.splitlines():
        if line.startswith("ob="):
            current = line[3:]
        elif line.startswith("calls="):
            is_call = True  # what follows is the callee's, told again
        elif line.startswith("0x"):
            if not is_call:
                address, _, count = line.split()
                everything += int(count)
                if current == program:
                    executed[int(address, 16)] += int(count)
            is_call = False
    return executed, everything


def profile(program, path):
    """As read_profile; None if this system refuses what the path needs (io_uring)."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}",
                               "--collect-atstart=no", "--dump-instr=yes", "--dump-line=yes",
                               "--compress-strings=no", "--compress-pos=no", program, path,
                               f"rounds={ROUNDS}"], capture_output=True, text=True)
        if done.returncode != 0 or not os.path.exists(out):
            raise Trouble(f"{path} failed under callgrind: {done.stderr.strip()[-200:]}")
        if '"refused":1' in done.stdout:
            return None
        if '"countable":1' not in done.stdout:
            raise Trouble("it was built without valgrind's headers (valgrind/callgrind.h)")
        with open(out) as file:
            return read_profile(file.read(), program)


# ---- the program --------------------------------------------------------------------------------

IS_LOCKED = re.compile(r"^(lock |mfence|xchg .*\()")


def locked_instructions(program):
    """Addresses of instructions that lock, by disassembly."""
    done = subprocess.run(["objdump", "-d", "--no-show-raw-insn", program], capture_output=True,
                          text=True, check=True)
    found = set()
    for line in done.stdout.splitlines():
        match = re.match(r"\s*([0-9a-f]+):\s+(.*)", line)
        if match and IS_LOCKED.match(match.group(2)):
            found.add(int(match.group(1), 16))
    return found


def source_chains(program, addresses):
    """address: ((function, file, line), ...), the innermost first."""
    told = subprocess.run(["addr2line", "-a", "-f", "-i", "-e", program],
                          input="\n".join(map(hex, addresses)), capture_output=True, text=True,
                          check=True).stdout.splitlines()
    chains, at = {}, 0
    while at < len(told):
        if told[at].startswith("0x"):
            current = chains.setdefault(int(told[at], 16), [])
            at += 1
            continue
        path, _, line = told[at + 1].split(" ")[0].rpartition(":")
        current.append((told[at], path, int(line) if line.isdigit() else 0))
        at += 2
    return {address: tuple(chain) for address, chain in chains.items()}


# ---- the source ---------------------------------------------------------------------------------

def call_at(text, start):
    """The arguments of the call whose parenthesis opens at start, and where it closes."""
    depth, arguments, begin = 0, [], start + 1
    for at in range(start, len(text)):
        if text[at] == "(":
            depth += 1
        elif text[at] == ")":
            depth -= 1
        if depth == 0 or (depth == 1 and text[at] == ","):
            arguments.append(text[begin:at].strip())
            begin = at + 1
        if depth == 0:
            return arguments, at
    return arguments, len(text)


def outer_start(text, at):
    """Where the macro begins that has it as an argument: to that line it is attributed, then."""
    statement = max(text.rfind(mark, 0, at) for mark in ";{}")
    for outer in re.finditer(r"\b(sni_likely|sni_unlikely|SNI_\w+)\(", text[statement + 1:at]):
        if call_at(text, statement + outer.end())[1] > at:
            return statement + 1 + outer.start()
    return at


def atomics_of(text):
    """line: (operation, order), for each line in which an atomic operation stands."""
    found = {}
    for match in re.finditer(r"\bsni_atomic_(\w+)\(", text):
        arguments, close = call_at(text, match.end() - 1)
        operation = match.group(1)
        order = arguments[-2] if operation == "cas" else arguments[-1]
        first = text.count("\n", 0, outer_start(text, match.start())) + 1
        last = text.count("\n", 0, close) + 1
        for line in range(first, last + 1):
            found.setdefault(line, []).append((operation, order))
    return found


class Sources:
    """Which atomic operations stand in which lines of the tree."""

    def __init__(self):
        self.files = {}

    def relative(self, path):
        """The path in the tree, however the compiler was told it; None if it is not of it."""
        for match in re.finditer(r"(?<![^/])(src|include)/", path):
            name = path[match.start():]
            if os.path.exists(os.path.join(ROOT, name)):
                return os.path.normpath(name)
        return None

    def atomics(self, path, line):
        name = self.relative(path)
        if name is None:
            return None, []
        if name not in self.files:
            with open(os.path.join(ROOT, name), encoding="utf-8") as file:
                self.files[name] = atomics_of(file.read())
        return name, self.files[name].get(line, [])


def is_rmw(operation):
    return operation not in ("load", "store", "fence")


def is_worth(operation, order):
    """Relaxed loads and stores are plain ones everywhere."""
    return is_rmw(operation) or order != "relaxed"


# ---- a budget -----------------------------------------------------------------------------------

def is_locked_site(operation, order):
    """Whether it becomes an instruction that locks: then only such a one is counted for it."""
    return is_rmw(operation) or (order == "seq_cst" and operation != "load")


def sites_of(executed, chains, locked, sources):
    """Site: executions."""
    most = collections.Counter()  # by the whole chain: each place where it is inlined
    for address, count in executed.items():
        chain = chains[address]
        name, operations = sources.atomics(chain[0][1], chain[0][2])
        for operation, order in operations:
            fits = address in locked or not is_locked_site(operation, order)
            if is_worth(operation, order) and fits:
                key = (Site(operation, order, chain[0][0], name), chain)
                most[key] = max(most[key], count)
    sites = collections.Counter()
    for (site, _), count in most.items():
        sites[site] += count
    return sites


def budget_of(program, path, locked, sources):
    counted = profile(program, path)
    if counted is None:
        return None
    executed, everything = counted
    chains = source_chains(program, executed)
    n = BATCH * ROUNDS
    functions = collections.Counter()
    for address, count in executed.items():
        functions[chains[address][0][0]] += count
    functions["(other libraries)"] = everything - sum(executed.values())
    sites = sites_of(executed, chains, locked, sources)
    return Budget(everything / n, sum(c for a, c in executed.items() if a in locked) / n,
                  {site: count / n for site, count in sites.items() if count / n >= WORTH_TELLING},
                  {name: count / n for name, count in
                   sorted(functions.items(), key=lambda i: (-round(i[1] / n), i[0]))[:FUNCTIONS_TOLD]})


def measure(build, names=PATHS):
    """name: Budget, without those that cannot be counted here"""
    for tool in ("valgrind", "objdump", "addr2line"):
        if shutil.which(tool) is None:
            raise Trouble(f"there is no {tool}; enable with: tools/setup test")
    program = os.path.abspath(os.path.join(build, "bench", "budget"))
    if not os.path.exists(program):
        raise Trouble(f"there is no {program}; build all first")
    locked, sources = locked_instructions(program), Sources()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda name: budget_of(program, name, locked, sources), names)
        return {name: budget for name, budget in zip(names, found) if budget is not None}


def by_lines(budget):
    """(read-modify-writes and full fences, acquire loads and release stores) per operation."""
    rmw = sum(count for s, count in budget.sites.items() if is_locked_site(s.operation, s.order))
    return rmw, sum(budget.sites.values()) - rmw


# ---- the document -------------------------------------------------------------------------------

OPINION = "## What is left to win"
HEAD = """# Instruction budgets

What each hot path executes, and the atomics in it: what is left to win. Written by `tools/benchcmp
--instructions BUILD --record "why"`, checked with the tests; counted by `tools/budgets.py` (its first lines
say how), the paths are in `bench/macro/budget.c`. One worker, nobody else waits or wakes; of {compiler}.
Only the last section is written by hand.

- *instructions*: all, also those of other libraries; a tenth more than here is a failed test.
- *locked*: instructions that lock a cache line or wait for the store buffer. On x86-64 each costs about
  eight plain ones (2.5 ns), and as much as a miss if another processor has the line.
- *acquire, release*: loads and stores with an order. Plain moves on x86-64, `ldar` and `stlr` on ARM.

| path | what | instructions | locked | acquire, release |
|---|---|--:|--:|--:|
"""


def path_text(name, budget):
    lines = [f"## {name}", "", f"{PATHS[name][0].upper()}{PATHS[name][1:]}: {budget.instructions:.0f}.", ""]
    if budget.sites:
        lines += ["| times | operation | order | in | of |", "|--:|---|---|---|---|"]
        lines += [f"| {count:.2f} | {s.operation} | {s.order} | `{s.function}` | {s.file} |"
                  for s, count in sorted(budget.sites.items(), key=lambda i: (-round(i[1], 2), i[0]))]
    else:
        lines.append("No atomics.")
    told = ", ".join(f"`{f}` {count:.0f}" if f[0] != "(" else f"{f} {count:.0f}"
                     for f, count in budget.functions.items())
    return lines + ["", f"Instructions by function: {told}.", ""]


def document(budgets, compiler, old=""):
    """Written anew, but for what people wrote: from OPINION on it is as in the old one."""
    lines = [f"| {name} | {PATHS[name]} | {b.instructions:.1f} | {b.locked:.2f} | {by_lines(b)[1]:.2f} |"
             for name, b in budgets.items()]
    text = HEAD.format(compiler=compiler) + "\n".join(lines) + "\n\n"
    for name, budget in budgets.items():
        text += "\n".join(path_text(name, budget)) + "\n"
    opinion = old[old.index(OPINION):] if OPINION in old else ""
    return (text + opinion).rstrip("\n") + "\n"


def read_document(text):
    """name: (instructions, locked, ordered)"""
    return {m[0]: tuple(map(float, m[1:])) for m in
            re.findall(r"^\| (\w+) \| [^|]+ \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", text, re.M)}


def stale(text, budgets, more_max, refused=()):
    """Sentences about what the document says and is not so; more_max in percent. Of those that could
    not be counted nothing is said."""
    said, told = read_document(text), []
    for name, b in budgets.items():
        if abs(b.locked - by_lines(b)[0]) > 0.1:
            told.append(f"{name} has {b.locked:.2f} locked instructions, and {by_lines(b)[0]:.2f} by the "
                        "lines of the source: tools/budgets.py misunderstands one")
        if name not in said:
            told.append(f"{name} is not in it")
            continue
        instructions, locked, ordered = said[name]
        if abs(b.instructions - instructions) > more_max / 100 * instructions:
            told.append(f"{name} has {b.instructions:.1f} instructions, not {instructions:.1f}")
        for what, now, was in (("locked instructions", b.locked, locked),
                               ("acquires and releases", by_lines(b)[1], ordered)):
            if abs(now - was) > 0.1:
                told.append(f"{name} has {now:.2f} {what}, not {was:.2f}")
    return told + [f"{name} is not counted any more" for name in said
                   if name not in budgets and name not in refused]


def main(words):
    if not words or words[0].startswith("-"):
        print(__doc__)
        return 2
    try:
        budgets = measure(words[0], words[1:] or PATHS)
    except Trouble as why:
        print(f"budgets: {why}", file=sys.stderr)
        return 2
    for name, budget in budgets.items():
        print("\n".join(path_text(name, budget)))
        print(f"locked: {budget.locked:.2f}; by lines: {by_lines(budget)[0]:.2f}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
