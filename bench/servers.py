# SPDX-License-Identifier: MIT
"""servers - a server under load, for bench/compare and bench/macro/echo.py.

Three workloads (peers/WORKLOADS.md): `echo` is loaded by echo_load, which compares each byte; `http` by
wrk, after two requests by hand, one in pieces and one that follows another, got the right answers;
`conn_mem` opens connections, makes one echo on each, and sees how much the server has grown.

workers=1: the server is on the first processor and the client on the second; workers=2: both are on
both. The server is a fresh process each time."""

import json
import os
import re
import resource
import shutil
import socket
import subprocess
import tempfile
import time

WORKLOADS = ("echo", "http", "conn_mem")
START_S = 10
STARTS = 3  # on so many ports
WARM_CONNS = 16
SPARE_FDS = 100
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"
REQUEST = b"GET /hello HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
WRK_LUA = os.path.join(os.path.dirname(os.path.realpath(__file__)), "macro", "wrk.lua")


class Trouble(Exception):
    """Why there is no figure."""


def pinned_to(cpus):
    return None if cpus is None else lambda: os.sched_setaffinity(0, cpus)


def allow_descriptors():
    """Raises the soft limit, which children inherit; how many connections that is good for."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return 1 << 20 if hard == resource.RLIM_INFINITY else max(1, hard - SPARE_FDS)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server process, alive within a `with`. A port that was free may be taken when the server comes
    to it: one that ends at once is started again on another."""

    def __init__(self, programs, name, kind, workers, cpus):
        self.name = name
        self.cpus = cpus
        self.command = lambda port: programs.serve(name, kind, port, workers)
        if self.command(1) is None:
            raise Trouble(f"it has no {kind}")

    def start(self):
        self.port = free_port()
        words, environment = self.command(self.port)
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(words, env={**os.environ, **environment},
                                        preexec_fn=pinned_to(self.cpus), start_new_session=True,
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def listens(self):
        """Whether it does, in time; and not another, while it ends because of that."""
        end = time.monotonic() + START_S
        while time.monotonic() < end and self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                time.sleep(0.05)
                return self.process.poll() is None
            except OSError:
                time.sleep(0.01)
        return False

    def __enter__(self):
        for _ in range(STARTS):
            self.start()
            if self.listens():
                return self
            has_ended = self.process.poll() is not None
            self.__exit__()
            if not has_ended:
                break
        raise Trouble(f"{self.name} does not listen: {self.said or 'it says nothing'}")

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.log.seek(0)
        self.said = self.log.read().strip()[-200:]
        self.log.close()

    def memory(self, field):
        with open(f"/proc/{self.process.pid}/status") as status:
            return int(re.search(rf"^{field}:\s+(\d+) kB", status.read(), re.M).group(1)) * 1024

    def cpu_s(self):
        return time.clock_gettime((~self.process.pid << 3) | 2)  # as clock_getcpuclockid

    def own_s(self):
        """What of it was spent outside the kernel, in ticks of a hundredth."""
        with open(f"/proc/{self.process.pid}/stat") as stat:
            return int(stat.read().rsplit(")", 1)[1].split()[11]) / os.sysconf("SC_CLK_TCK")

    def check_alive(self):
        if self.process.poll() is not None:
            raise Trouble(f"{self.name} has died")


# ---- echo ---------------------------------------------------------------------------------------

def load_echo(folder, server, cpus, options):
    command = [os.path.join(folder, "echo_load"), "-p", str(server.port),
               "-P", str(server.process.pid), *map(str, options)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60,
                          preexec_fn=pinned_to(cpus))
    server.check_alive()
    if not done.stdout.strip():
        raise Trouble(f"echo_load: {done.stderr.strip()[-200:]}")
    return json.loads(done.stdout)


def idle_memory(folder, server, conns, rest_s=0.5):
    """What an idle connection takes: bytes of RSS, bytes of page tables, and what the client told."""
    load_echo(folder, server, None, ["-c", WARM_CONNS, "-w", 0.1, "-d", 0.1])
    before = [server.memory(field) for field in ("VmRSS", "VmPTE")]
    client = subprocess.Popen([os.path.join(folder, "echo_load"), "-p", str(server.port), "-c",
                               str(conns), "-I", "60"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        if client.stdout.readline().strip() != "READY":
            raise Trouble(f"{server.name} did not take {conns} connections")
        time.sleep(rest_s)
        after = [server.memory(field) for field in ("VmRSS", "VmPTE")]
        told, _ = client.communicate(timeout=30)
    finally:
        client.kill()
        client.wait()
    rss, tables = ((b - a) / conns for a, b in zip(before, after))
    return {"rss": after[0], "rss_each": rss, "tables_each": tables, **json.loads(told)}


# ---- http ---------------------------------------------------------------------------------------

def read_exactly(conn, n):
    got = b""
    while len(got) < n:
        more = conn.recv(n - len(got))
        if not more:
            break
        got += more
    return got


def check_http(port):
    """One request that comes in two pieces, then two at once."""
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as conn:
            conn.sendall(REQUEST[:7])
            time.sleep(0.01)
            conn.sendall(REQUEST[7:])
            first = read_exactly(conn, len(ANSWER))
            conn.sendall(REQUEST * 2)
            rest = read_exactly(conn, 2 * len(ANSWER))
    except OSError as why:
        raise Trouble(f"no answer by HTTP: {why}") from None
    if first != ANSWER or rest != ANSWER * 2:
        raise Trouble(f"another answer than was asked for: {first[:60]!r}")


def load_http(server, cpus, conns, threads, seconds):
    if shutil.which("wrk") is None:
        raise Trouble("there is no wrk; enable with: tools/setup bench")
    used, own = server.cpu_s(), server.own_s()
    done = subprocess.run(["wrk", "-t", str(threads), "-c", str(conns), "-d", f"{seconds}s",
                           "--timeout", "30s", "-s", WRK_LUA,
                           f"http://127.0.0.1:{server.port}/hello"],
                          capture_output=True, text=True, timeout=60, preexec_fn=pinned_to(cpus))
    server.check_alive()
    found = re.search(r"^JSON (.*)$", done.stdout, re.M)
    if not found:
        raise Trouble(f"wrk failed: {done.stderr.strip()[-200:]}")
    return {**json.loads(found.group(1)), "server_s": server.cpu_s() - used,
            "own_s": server.own_s() - own}


# ---- a sample -----------------------------------------------------------------------------------

def parameters(words):
    return {key: float(value) for key, value in (word.split("=") for word in words[1:])}


def figures(requests, seconds, server_s, p50_us, p99_us):
    """In the units of the others: less is better."""
    return {"requests": requests, "ns_per_op": 1e9 * seconds / max(1, requests),
            "server_ns": 1e9 * server_s / max(1, requests),
            "p50_ns": 1e3 * p50_us, "p99_ns": 1e3 * p99_us}


def measure_echo(folder, server, cpus, p):
    window_s = p["window_ms"] / 1000
    threads = int(min(p["workers"], p["conns"]))
    r = load_echo(folder, server, cpus, ["-c", int(p["conns"]), "-t", threads, "-w", window_s / 2,
                                         "-d", window_s])
    if r["errors"]:
        raise Trouble(f"{r['errors']} errors")
    return {**figures(r["requests"], r["window_s"], r["server_us"] * r["requests"] / 1e6,
                      r["p50_us"], r["p99_us"]),
            "cpu_ratio": r["server_us"] / max(r["client_us"], 0.001),
            "unfair": r["conn_most"] / max(r["conn_least"], 1)}


def measure_http(server, cpus, p):
    check_http(server.port)
    threads = int(min(p["workers"], p["conns"]))
    if p.get("warm_s"):
        load_http(server, cpus, int(p["conns"]), threads, int(p["warm_s"]))
    r = load_http(server, cpus, int(p["conns"]), threads, int(p["window_s"]))
    if r["errors"]:
        raise Trouble(f"{r['errors']} errors")
    return {**figures(r["requests"], r["duration_us"] / 1e6, r["server_s"], r["p50_us"], r["p99_us"]),
            "own_ns": 1e9 * r["own_s"] / max(1, r["requests"])}


def measure_memory(folder, server, p):
    r = idle_memory(folder, server, int(p["conns"]))
    if r["errors"]:
        raise Trouble(f"{r['errors']} errors")
    return {"bytes_per_conn": r["rss_each"], "tables_per_conn": r["tables_each"]}


def check_result(result):
    if result.get("requests") == 0:
        raise Trouble("no request was answered within the window")


def measure(programs, name, words, cpus):
    """One sample of a workload, as the yardstick's programs would tell it; raises Trouble."""
    p = parameters(words)
    most = allow_descriptors()
    if p["conns"] > most:
        raise Trouble(f"{p['conns']:.0f} connections need more than the {most} descriptors here")
    alone = p["workers"] == 1 and len(cpus) > 1
    kind = "http" if words[0] == "http" else "echo"
    own, others = ({cpus[0]}, {cpus[1]}) if alone else (set(cpus), set(cpus))
    try:
        with Server(programs, name, kind, int(p["workers"]), own) as server:
            if words[0] == "echo":
                result = measure_echo(programs.native, server, others, p)
            elif words[0] == "http":
                result = measure_http(server, others, p)
            else:
                result = measure_memory(programs.native, server, p)
    except (subprocess.TimeoutExpired, FileNotFoundError) as why:
        raise Trouble(str(why)) from None
    check_result(result)
    return {"peer": name, "workload": words[0], "workers": int(p["workers"]), **result}
