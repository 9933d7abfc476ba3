#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""echo - echo servers side by side: ours, two written by hand, and peers (workload: echo_load.c).

    make bench-echo                       the quick form, below two minutes
    make bench-echo ECHO_ARGS=            the full form
    bench/macro/echo.py --servers epoll,sinew-epoll-fiber --conns 64 --rounds 5

Modes: 1-core, the server with one worker on the first cpu and the client on the second; 2-worker,
nothing is pinned. A round takes one sample of each server in each cell, with a fresh process; the
order rotates from round to round. Figures are medians over rounds. A sample during which others
used the machine is left out if there are better ones, else the row is marked with ~.

    rps, p50, p99      what the client saw
    p99/p50            latency as such is C / rps; its spread is what tells
    srv/cli            processor time of the server, in times of the client's; rps drifts with the
                       machine, this hardly does
    fair               requests of the slowest connection / of the fastest

Idle memory: how much the server's RSS grows by one of 10,000 connections that made one echo, after
a warm-up with 16; and its page tables.

Go and Tokio are built by their own tools, if those are there. Nothing is installed. Each sample is
a line of JSON, appended to a file. Exit: 0, 1 a sample had errors, 2 wrong usage or no programs."""

import argparse
import json
import os
import platform
import re
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
PEERS = os.path.join(ROOT, "bench", "peers")
MODES = ("1-core", "2-worker")
IDLE_CONNS = 10000
WARM_CONNS = 16
DISTURBED = 0.2  # cpus that others used
START_S = 5
BUILD_S = 300

SERVERS = {  # name: (program, what follows port and workers, environment)
    "epoll": ("echo_epoll", [], {}),
    "uring": ("echo_uring", [], {}),
    "sinew-uring-fiber": ("echo_server", ["fiber"], {"SINEW_IO": "uring"}),
    "sinew-uring-coro": ("echo_server", ["coro"], {"SINEW_IO": "uring"}),
    "sinew-epoll-fiber": ("echo_server", ["fiber"], {"SINEW_IO": "epoll"}),
    "sinew-epoll-coro": ("echo_server", ["coro"], {"SINEW_IO": "epoll"}),
    "go": ("peers/echo_go", [], {}),
    "tokio": ("peers/echo_tokio", [], {}),
}


def say(text):
    print(f"echo: {text}", flush=True)


# ---- programs -----------------------------------------------------------------------------------

def build_peer(name, command, out):
    """Build a peer with its own tool; says why not, if not."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_S)
    except FileNotFoundError:
        return say(f"without {name}: there is no {command[0]}")
    except subprocess.TimeoutExpired:
        return say(f"without {name}: building it takes too long")
    if done.returncode != 0 or not os.path.exists(out):
        last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        return say(f"without {name}: {' '.join(command[:2])} failed: {last}")


def build_peers(names, folder):
    target = os.path.join(folder, "peers")
    os.makedirs(target, exist_ok=True)
    if "go" in names:
        out = os.path.join(target, "echo_go")
        build_peer("go", ["go", "build", "-o", out, os.path.join(PEERS, "echo_go", "main.go")], out)
    if "tokio" in names:
        link = os.path.join(target, "echo_tokio")
        cargo = os.path.join(target, "cargo")
        out = os.path.join(cargo, "release", "echo_tokio")
        build_peer("tokio", ["cargo", "build", "--release", "--locked", "--quiet", "--target-dir",
                             cargo, "--manifest-path",
                             os.path.join(PEERS, "echo_tokio", "Cargo.toml")], out)
        if os.path.exists(out) and not os.path.lexists(link):
            os.symlink(out, link)


def present(names, folder):
    """Those of the servers that are built."""
    found = []
    for name in names:
        if os.path.exists(os.path.join(folder, SERVERS[name][0])):
            found.append(name)
        elif name not in ("go", "tokio"):  # they have had their line
            say(f"without {name}: {SERVERS[name][0]} is not built")
    return found


# ---- a server -----------------------------------------------------------------------------------

def pinned_to(cpu):
    return None if cpu is None else lambda: os.sched_setaffinity(0, {cpu})


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server process, alive within a `with`."""

    def __init__(self, name, folder, workers, cpu):
        program, args, env = SERVERS[name]
        self.name = name
        self.port = free_port()
        self.log = tempfile.TemporaryFile("w+")
        command = [os.path.join(folder, program), str(self.port), str(workers), *args]
        self.process = subprocess.Popen(command, env={**os.environ, **env}, preexec_fn=pinned_to(cpu),
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def __enter__(self):
        end = time.monotonic() + START_S
        while time.monotonic() < end and self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                time.sleep(0.05)
                return self
            except OSError:
                time.sleep(0.01)
        self.__exit__()
        raise RuntimeError(f"{self.name} does not listen: {self.said or 'it says nothing'}")

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.log.seek(0)
        self.said = self.log.read().strip()
        self.log.close()

    def memory(self, field):
        with open(f"/proc/{self.process.pid}/status") as status:
            return int(re.search(rf"^{field}:\s+(\d+) kB", status.read(), re.M).group(1)) * 1024


# ---- samples ------------------------------------------------------------------------------------

class Bench:
    def __init__(self, args, folder, names):
        self.args = args
        self.folder = folder
        self.names = names
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

    def load(self, server, cpu, options):
        command = [os.path.join(self.folder, "echo_load"), "-p", str(server.port),
                   "-P", str(server.process.pid), *map(str, options)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60,
                              preexec_fn=pinned_to(cpu))
        if server.process.poll() is not None:
            raise RuntimeError(f"{server.name} has died")
        return json.loads(done.stdout)

    def sample(self, mode, conns, name, number):
        pinned = mode == "1-core"
        workers = 1 if pinned else 2
        with Server(name, self.folder, workers, self.cpus[0] if pinned else None) as server:
            result = self.load(server, self.cpus[1] if pinned else None,
                               ["-c", conns, "-t", workers, "-w", self.args.window / 2,
                                "-d", self.args.window])
        self.keep("echo", self.samples, {"server": name, "mode": mode, "round": number, **result})

    def idle(self, name, conns):
        with Server(name, self.folder, 1, self.cpus[0]) as server:
            self.load(server, None, ["-c", WARM_CONNS, "-w", 0.1, "-d", 0.1])
            before = [server.memory(field) for field in ("VmRSS", "VmPTE")]
            client = subprocess.Popen(
                [os.path.join(self.folder, "echo_load"), "-p", str(server.port), "-c", str(conns),
                 "-I", "60"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            try:
                if client.stdout.readline().strip() != "READY":
                    raise RuntimeError(f"{name} did not take {conns} connections")
                time.sleep(0.5)
                after = [server.memory(field) for field in ("VmRSS", "VmPTE")]
                told, _ = client.communicate(timeout=30)
            finally:
                client.kill()
                client.wait()
        rss, tables = ((b - a) / conns for a, b in zip(before, after))
        self.keep("idle", self.idles,
                  {"server": name, "conns": conns, "rss": after[0], "rss_each": rss,
                   "tables_each": tables, "errors": json.loads(told)["errors"]})

    def guarded(self, step, name, *args):
        """A server that cannot even start is left out from then on."""
        try:
            step(*args)
        except (RuntimeError, subprocess.TimeoutExpired) as why:
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
            for name in SERVERS:
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
    parser.add_argument("--servers", type=listed(str), metavar="NAME,...", default=list(SERVERS),
                        help=", ".join(SERVERS))
    parser.add_argument("--modes", type=listed(str), metavar="MODE,...", default=list(MODES),
                        help=", ".join(MODES))
    parser.add_argument("--no-idle", action="store_true", help="without memory")
    parser.add_argument("--limit", type=float, metavar="S", help="begin no sample later than this")
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"), metavar="DIR")
    parser.add_argument("--json", metavar="FILE", help="default: bench/echo.jsonl in the build")
    args = parser.parse_args()
    quick = args.quick
    args.rounds = args.rounds or (3 if quick else 5)
    args.window = args.window or (0.3 if quick else 1.0)
    args.conns = args.conns or ([1, 64, 1000] if quick else [1, 64, 1000, IDLE_CONNS])
    args.limit = args.limit or (110 if quick else 1800)
    args.json = args.json or os.path.join(args.build, "bench", "echo.jsonl")
    for word in args.servers + args.modes:
        if word not in SERVERS and word not in MODES:
            parser.error(f"what is '{word}'?")
    return args


def fit_limits(args):
    """Raises the soft limit of descriptors, which children inherit; fewer connections if need be.
    Returns how many."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    most = 1 << 20 if hard == resource.RLIM_INFINITY else max(1, hard - 100)
    if most < max(args.conns + [IDLE_CONNS]):
        say(f"at most {most} connections: ulimit -n is {hard}")
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
    build_peers(args.servers, folder)
    bench = Bench(args, folder, present(args.servers, folder))
    if not args.no_idle:
        bench.all_idle(idle_conns)
    bench.all_samples()
    print_tables(bench)
    return 1 if bench.failures else 0


if __name__ == "__main__":
    sys.exit(main())
