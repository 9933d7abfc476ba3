#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_tidy.py - every rule of tools/tidy stays silent on its good tree and speaks on its bad one.

tidy_fixtures/<rule>/ holds the trees `good` and `bad`, and `expect.txt`: the path:line of each
complaint about `bad`, all of them of that rule. A rule without fixtures is a failure."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
TIDY = os.path.join(HERE, "..", "..", "tools", "tidy")
FIXTURES = os.path.join(HERE, "tidy_fixtures")

failures = 0


def tidy(*words):
    """(exit status, complaints as (place, rule), all output)"""
    done = subprocess.run([sys.executable, TIDY, *words], capture_output=True, text=True)
    complaints = re.findall(r"^(\S+:\d+): ([a-z-]+): ", done.stdout, re.M)
    return done.returncode, complaints, done.stdout + done.stderr


def check(sentence, good, output=""):
    global failures
    print(f"{'ok' if good else 'FAIL'}  tidy: {sentence}")
    if not good:
        failures += 1
        print("".join(f"    | {line}\n" for line in output.splitlines()), end="")


def rules():
    return re.findall(r"^([a-z-]+) ", tidy("--list-rules")[2], re.M)


def check_rule(rule):
    folder = os.path.join(FIXTURES, rule)
    status, complaints, output = tidy("--root", os.path.join(folder, "good"))
    check(f"{rule} is silent on its good tree", (status, complaints) == (0, []), output)

    with open(os.path.join(folder, "expect.txt")) as stream:
        expected = [(place, rule) for place in stream.read().split()]
    status, complaints, output = tidy("--root", os.path.join(folder, "bad"))
    wrong = "\n".join(f"expected {c}" for c in expected if c not in complaints)
    exact = (status, sorted(set(complaints))) == (1, sorted(expected))
    check(f"{rule} speaks on its bad tree, and it alone", exact, output + wrong)


def check_command_line():
    bad = os.path.join(FIXTURES, "length", "bad")
    status, complaints, output = tidy("--root", bad, "--rule", "essay")
    check("--rule runs one rule", (status, complaints) == (0, []), output)
    check("the last line counts", output.endswith("tidy: 2 files, 0 complaints\n"), output)
    status, _, output = tidy("--rule", "no-such-rule")
    check("an unknown rule is refused", status == 2 and "no-such-rule" in output, output)


def check_outside_git():
    with tempfile.TemporaryDirectory() as folder:
        tree = os.path.join(folder, "tree")
        shutil.copytree(os.path.join(FIXTURES, "spdx", "bad"), tree)
        with open(os.path.join(tree, "data.c"), "wb") as stream:
            stream.write(b"\0 not text")
        status, complaints, output = tidy("--root", tree)
        check("works outside git and skips what is not text",
              status == 1 and len(complaints) == 5, output)


def main():
    names = rules()
    strays = set(os.listdir(FIXTURES)) - set(names) - {".clang-format", ".gitattributes"}
    check("there are rules, and every fixture belongs to one", len(names) > 10 and not strays,
          " ".join(sorted(strays)))
    for rule in names:
        check_rule(rule)
    check_command_line()
    check_outside_git()
    print(f"test_tidy: {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
