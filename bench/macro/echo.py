#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""echo - echo servers side by side: ours, two written by hand, and peers (workload: echo_load.c).

    make bench-echo                       the quick form, below two minutes
    make bench-echo ECHO_ARGS=            the full form
    bench/macro/echo.py --servers epoll,sinew-epoll --conns 64 --rounds 5
    bench/macro/echo.py --was ../before/build/release --servers sinew    what a change has done

Modes: 1-core, the server with one worker on the first cpu and the client on the second; 2-worker,
nothing is pinned, and the client has two threads as well; 1-worker, the same with one worker: what
the second one costs. A round takes one sample of each server in each cell, with a fresh process; the
order rotates from round to round. Figures are medians over rounds. A sample during which others
used the machine is left out if there are better ones, else the row is marked with ~.

    rps, p50, p99      what the client saw
    p99/p50            latency as such is C / rps; its spread is what tells
    srv/cli            processor time of the server, in times of the client's; rps drifts with the
                       machine, this hardly does
    fair               requests of the slowest connection / of the fastest

Idle memory: how much the server's RSS grows by one of 10,000 connections that made one echo, after
a warm-up with 16; and its page tables.

`sinew` are fibers and `sinew-coro` coroutines over io_uring, with `-epoll` over epoll; `epoll` and
`uring` are written by hand. Peers are built by their own tools, if those are there; nothing is
installed. bench/compare has the same rows beside others, in rounds that can be cut; this one has more
columns. Each sample is a line of JSON, appended to a file. Exit: 0, 1 a sample had errors, 2 wrong usage or no programs."""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # the source tree stays as it is
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
import programs
import servers
from servers import Server, Trouble

ROOT = programs.ROOT
MODES = {"1-core": (1, 1), "2-worker": (2, 2), "1-worker": (1, 2)}  # workers, threads of the client
IDLE_CONNS = 10000
DISTURBED = 0.2  # cpus that others used
SERVERS = programs.SERVERS
QUICK = [name for name in SERVERS if name not in ("java", "erlang", "asio", "asio-co", "libuv")]


def say(text):
    print(f"echo: {text}", flush=True)


# ---- samples ------------------------------------------------------------------------------------

class Bench:
    def __init__(self, args, built):
        self.args = args
        self.programs = built
        self.names = [name for name in args.servers if name in built.servers]
        self.order = list(self.names)
        self.cpus = sorted(os.sched_getaffinity(0))
        self.samples = []
        self.idles = []
        self.failures = 0
        self.run = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()) + f"-{os.getpid()}"
        self.end = time.monotonic() + args.limit

    def late(self):
        return time.monotonic() > self.end

    def keep(self, kind, into, sample):
        into.append(sample)
        line = {"what": kind, **sample, "run": self.run, "kernel": platform.release(),
                "load": os.getloadavg()[0]}
        with open(self.args.json, "a") as out:
            out.write(json.dumps(line) + "\n")
        if sample["errors"] > 0:
            self.failures += 1
            errors = {k[7:]: v for k, v in sample.items() if k.startswith("errors_") and v}
            say(f"{sample['server']}: {sample['errors']} errors: {errors}")

    def sample(self, mode, conns, name, number):
        pinned = mode == "1-core"
        workers, threads = MODES[mode]
        server_on, client_on = ({cpu} if pinned else None for cpu in self.cpus[:2])
        with Server(self.programs, name, "echo", workers, server_on) as server:
            result = servers.load_echo(self.programs.native, server, client_on,
                                       ["-c", conns, "-t", min(threads, conns), "-w",
                                        self.args.window / 2, "-d", self.args.window])
        self.keep("echo", self.samples, {"server": name, "mode": mode, "round": number, **result})

    def idle(self, name, conns):
        with Server(self.programs, name, "echo", 1, {self.cpus[0]}) as server:
            result = servers.idle_memory(self.programs.native, server, conns)
        self.keep("idle", self.idles, {"server": name, **result})

    def guarded(self, step, name, *args):
        """A server that cannot even start is left out from then on."""
        try:
            step(*args)
        except (Trouble, subprocess.TimeoutExpired) as why:
            say(f"without {name}: {why}")
            self.names.remove(name)

    def all_samples(self):
        for number in range(self.args.rounds):
            for mode in self.args.modes:
                for conns in self.args.conns:
                    turn = number % max(1, len(self.names))
                    for name in self.names[turn:] + self.names[:turn]:
                        if self.late():
                            return say(f"the limit of {self.args.limit} s is over")
                        self.guarded(self.sample, name, mode, conns, name, number)

    def all_idle(self, conns):
        for name in list(self.names):
            if not self.late():
                self.guarded(self.idle, name, name, conns)


# ---- tables -------------------------------------------------------------------------------------

def is_clean(sample):
    return sample["other_util"] + sample["stolen"] < DISTURBED


def row(samples):
    clean = [s for s in samples if is_clean(s)]
    used = clean or samples

    def median(figure):
        return statistics.median(figure(s) for s in used)

    cells = [
        f"{median(lambda s: s['rps']):,.0f}",
        f"{median(lambda s: s['p50_us']):,.0f}",
        f"{median(lambda s: s['p99_us']):,.0f}",
        f"{median(lambda s: s['p99_us'] / max(s['p50_us'], 0.001)):.1f}",
        f"{median(lambda s: s['server_us'] / max(s['client_us'], 0.001)):.2f}",
        f"{median(lambda s: s['server_us']):.1f}",
        f"{median(lambda s: s['conn_least'] / max(s['conn_most'], 1)):.2f}",
    ]
    return cells + [f"{len(used)}{'' if clean else ' ~'}"]


def print_table(head, rows):
    widths = [max(len(line[i]) for line in [head] + rows) for i in range(len(head))]
    for line in [head] + rows:
        cells = [cell.rjust(width) for cell, width in zip(line[1:], widths[1:])]
        print("  ".join([line[0].ljust(widths[0])] + cells))


def print_tables(bench):
    head = ["server", "C", "rps", "p50 us", "p99 us", "p99/p50", "srv/cli", "srv us", "fair", "n"]
    for mode in bench.args.modes:
        rows = []
        for conns in bench.args.conns:
            for name in bench.order:
                cell = [s for s in bench.samples
                        if (s["server"], s["mode"], s["conns"]) == (name, mode, conns)]
                if cell:
                    rows.append([name, str(conns)] + row(cell))
        if rows:
            print(f"\n{mode}")
            print_table(head, rows)
    if bench.idles:
        print(f"\n{bench.idles[0]['conns']:,} idle connections, 1 worker")
        print_table(["server", "RSS MB", "bytes each", "page tables each"],
                    [[s["server"], f"{s['rss'] / 1e6:.1f}", f"{s['rss_each']:,.0f}",
                      f"{s['tables_each']:,.0f}"] for s in bench.idles])
    print(f"\nsamples: {bench.args.json}")


# ---- command line -------------------------------------------------------------------------------

def listed(kind):
    return lambda text: [kind(word) for word in text.split(",") if word]


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="below two minutes")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--window", type=float, metavar="S", help="what is measured of a sample")
    parser.add_argument("--conns", type=listed(int), metavar="N,...")
    parser.add_argument("--servers", type=listed(str), metavar="NAME,...",
                        help=", ".join(SERVERS))
    parser.add_argument("--modes", type=listed(str), metavar="MODE,...", default=["1-core", "2-worker"],
                        help=", ".join(MODES))
    parser.add_argument("--no-idle", action="store_true", help="without memory")
    parser.add_argument("--limit", type=float, metavar="S", help="begin no sample later than this")
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"), metavar="DIR")
    parser.add_argument("--was", metavar="DIR",
                        help="another build: each of ours runs from both, as NAME and NAME.was")
    parser.add_argument("--json", metavar="FILE", help="default: bench/echo.jsonl in the build")
    args = parser.parse_args()
    quick = args.quick
    args.rounds = args.rounds or (3 if quick else 5)
    args.window = args.window or (0.3 if quick else 1.0)
    args.conns = args.conns or ([1, 64, 1000] if quick else [1, 64, 1000, IDLE_CONNS])
    args.servers = args.servers or (QUICK if quick else SERVERS)
    args.limit = args.limit or (110 if quick else 1800)
    args.json = args.json or os.path.join(args.build, "bench", "echo.jsonl")
    for word in args.servers + args.modes:
        if word not in SERVERS and word not in MODES:
            parser.error(f"what is '{word}'?")
    if args.was:
        args.servers = programs.with_was(args.servers)
    return args


def fit_limits(args):
    """Fewer connections, if there are not descriptors enough. Returns how many."""
    most = servers.allow_descriptors()
    if most < max(args.conns + [IDLE_CONNS]):
        say(f"at most {most} connections: more descriptors are not allowed")
    args.conns = sorted({min(conns, most) for conns in args.conns})
    return min(most, IDLE_CONNS)


def main():
    args = read_options()
    folder = os.path.join(args.build, "bench")
    idle_conns = fit_limits(args)
    if not os.path.exists(os.path.join(folder, "echo_load")):
        say("echo_load is not built; make bench-echo does it")
        return 2
    if len(os.sched_getaffinity(0)) < 2 and "1-core" in args.modes:
        say("without 1-core: it needs a cpu for each side")
        args.modes.remove("1-core")
    built = programs.Programs(args.build, say, args.was)
    built.build([], args.servers)
    bench = Bench(args, built)
    if not args.no_idle:
        bench.all_idle(idle_conns)
    bench.all_samples()
    print_tables(bench)
    return 1 if bench.failures else 0


if __name__ == "__main__":
    sys.exit(main())
