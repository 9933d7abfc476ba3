# SPDX-License-Identifier: MIT
"""programs - what bench/compare and bench/macro/echo.py run: how it is built, called, and which version
it is of.

A peer has up to two programs: the yardstick, which does a workload and reports it, and a server,
`PORT WORKERS echo|http`, that is put under load from outside (servers.py). Both are built by the
peer's own tools, into bench/peers of the build; Sinew's and the floor's by CMake. What cannot be
built is named with the reason and left out.

NAME.was is Sinew's NAME from another build, e.g. of the commit before: what a change has done is told
by runs of both in turn."""

import glob
import os
import re
import shutil
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
PEERS = os.path.join(ROOT, "bench", "peers")
BUILD_S = 600
JDK_MIN = 21

NATIVE = {"sinew": "yard_sinew", "sinew-coro": "yard_sinew_coro", "floor": "yard_floor"}
COMPILED = {  # name: (compiler, source, flags, libraries)
    "libuv": ("gcc", "libuv/main.c", ["-D_GNU_SOURCE"], ["-luv", "-pthread"]),
    "openmp": ("gcc", "openmp/main.c", ["-D_GNU_SOURCE", "-fopenmp"], []),
    "tbb": ("g++", "tbb/main.cpp", ["-std=c++17"], ["-ltbb"]),
    "boost.fiber": ("g++", "boost_fiber/main.cpp", ["-std=c++17"],
                    ["-lboost_fiber", "-lboost_context", "-pthread"]),
    "caf": ("g++", "caf/main.cpp", ["-std=c++17"], ["-lcaf_core", "-pthread"]),
}
COMPILED_SERVERS = {
    "libuv": ("gcc", "libuv/serve.c", ["-D_GNU_SOURCE"], ["-luv", "-pthread"]),
    "asio": ("g++", "asio/serve.cpp", ["-std=c++20", "-DBOOST_ALLOW_DEPRECATED_HEADERS"],
             ["-pthread"]),
}
NATIVE_SERVERS = {  # name: (program of each kind, the words after the kind, environment)
    "sinew": ({"echo": "server", "http": "server"}, ["fiber"], {"SINEW_IO": "uring"}),
    "sinew-coro": ({"echo": "server", "http": "server"}, ["coro"], {"SINEW_IO": "uring"}),
    "sinew-epoll": ({"echo": "server", "http": "server"}, ["fiber"], {"SINEW_IO": "epoll"}),
    "sinew-coro-epoll": ({"echo": "server", "http": "server"}, ["coro"], {"SINEW_IO": "epoll"}),
    "epoll": ({"echo": "echo_epoll", "http": "http_epoll"}, None, {}),
    "uring": ({"echo": "echo_uring"}, None, {}),
}
SERVERS = list(NATIVE_SERVERS) + ["go", "tokio", "java", "erlang", "asio", "asio-co", "libuv"]
SHARED = {"asio-co": "asio", "tokio-ct": "tokio"}  # the same program, told otherwise
WAS = ".was"  # behind the name: of the other build


def plain_name(name):
    return name.removesuffix(WAS)


def with_was(names):
    """Each of ours followed by what it was."""
    return [n for name in names for n in ([name, name + WAS] if name.startswith("sinew") else [name])]


def homely(text):
    """Without the paths of this machine: it may end up in a report."""
    return re.sub(r"(?<![\w.])/[\w.+/-]*/", "", text.replace(ROOT + "/", ""))


def run_tool(command, cwd=None):
    """None, or why it did not work."""
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=BUILD_S)
    except FileNotFoundError:
        return f"there is no {command[0]}"
    except subprocess.TimeoutExpired:
        return "building it takes too long"
    if done.returncode == 0:
        return None
    said = [text for text in done.stderr.splitlines() if "error" in text] or ["it says nothing"]
    return f"{os.path.basename(command[0])} failed: {homely(said[0].strip())}"


def is_newer(out, folder):
    """Tells whether out was built after all that it is made of."""
    sources = [os.path.join(PEERS, name) for name in ("yard.h", "http.h")]
    sources += glob.glob(os.path.join(folder, "*"))
    return os.path.exists(out) and all(
        os.path.getmtime(out) > os.path.getmtime(source) for source in sources)


def find_jdk():
    """The bin folder of the newest JDK that has virtual threads, or None."""
    homes = [os.environ.get("JAVA_HOME", "")] + glob.glob("/usr/lib/jvm/*")
    javac = shutil.which("javac")
    if javac:
        homes.append(os.path.dirname(os.path.dirname(os.path.realpath(javac))))
    best = (JDK_MIN - 1, None)
    for home in filter(None, homes):
        found = first_match(os.path.join(home, "release"), r'JAVA_VERSION="(\d+)')
        if found and os.path.exists(os.path.join(home, "bin", "javac")):
            best = max(best, (int(found), os.path.join(home, "bin")))
    return best[1]


def first_match(path, pattern, otherwise=""):
    try:
        with open(path) as file:
            found = re.search(pattern, file.read(), re.M)
    except OSError:
        return otherwise
    return found.group(1).strip() if found else otherwise


def workers_of(words):
    return next((int(word[8:]) for word in words if word.startswith("workers=")), 1)


class Programs:
    """The peers that can be run here, and how."""

    def __init__(self, build, say, was=None):
        """was: the folder of another build of Sinew, if there is one beside."""
        self.native = os.path.join(os.path.abspath(build), "bench")  # tools run in the peers' folders
        self.was = os.path.join(os.path.abspath(was), "bench") if was else None
        self.folder = os.path.join(self.native, "peers")
        self.say = say
        self.prefix = {}  # name: the words before those of the workload
        self.servers = {}  # name: the words before port and workers
        self.missing = {}  # name: why
        os.makedirs(self.folder, exist_ok=True)

    def out(self, name):
        return os.path.join(self.folder, name)

    def build(self, names, servers=()):
        for name in names:
            self.build_into(self.prefix, name, name, self.build_yard)
        for name in servers:
            self.build_into(self.servers, name, f"the server of {name}", self.build_server)

    def build_into(self, into, name, told, build):
        self.say(f"building {told}")
        prefix, why = build(name)
        if why is None:
            into[name] = prefix
        else:
            self.missing[told] = why
            self.say(f"without {told}: {why}")

    # The rest returns the words that call it, and None or why it was not built.

    def native_path(self, name, program):
        return os.path.join(self.was if name.endswith(WAS) else self.native, program)

    def made_by_cmake(self, name, program):
        path = self.native_path(name, program)
        return [path], None if os.path.exists(path) else "it is not built; make bench does it"

    def compile(self, out, compiler, source, flags, libraries):
        out, source = self.out(out), os.path.join(PEERS, source)
        if is_newer(out, os.path.dirname(source)):
            return [out], None
        return [out], run_tool([compiler, "-O2", "-Wall", "-Wextra", *flags, source, "-o", out,
                                *libraries])

    def go(self, out, folder):
        return [self.out(out)], run_tool(["go", "build", "-o", self.out(out), "."],
                                         os.path.join(PEERS, folder))

    def cargo(self, out, folder):
        target = self.out("cargo")
        return ([os.path.join(target, "release", out)],
                run_tool(["cargo", "build", "--release", "--locked", "--quiet", "--target-dir", target,
                          "--manifest-path", os.path.join(PEERS, folder, "Cargo.toml")]))

    def erlc(self, source):
        os.makedirs(self.out("erlang"), exist_ok=True)
        return ["erl"], run_tool(["erlc", "-o", self.out("erlang"),
                                  os.path.join(PEERS, "erlang", source)])

    def javac(self, source):
        jdk = find_jdk()
        if jdk is None:
            return [], f"there is no JDK of {JDK_MIN} or later"
        return [os.path.join(jdk, "java")], run_tool([
            os.path.join(jdk, "javac"), "-d", self.out("java"), os.path.join(PEERS, "java", source)])

    def build_yard(self, name):
        if plain_name(name) in NATIVE:
            return self.made_by_cmake(name, NATIVE[plain_name(name)])
        if name in COMPILED:
            return self.compile("yard_" + name, *COMPILED[name])
        return {"go": lambda: self.go("yard_go", "go"), "erlang": lambda: self.erlc("yard.erl"),
                "tokio": lambda: self.cargo("yard_tokio", "tokio"),
                "tokio-ct": lambda: self.cargo("yard_tokio", "tokio"),
                "java": lambda: self.javac("Yard.java")}[name]()

    def build_server(self, name):
        if plain_name(name) in NATIVE_SERVERS:
            return self.made_by_cmake(name, NATIVE_SERVERS[plain_name(name)][0]["echo"])
        source = SHARED.get(name, name)
        if source in COMPILED_SERVERS:
            return self.compile("serve_" + source, *COMPILED_SERVERS[source])
        return {"go": lambda: self.go("serve_go", "serve_go"),
                "tokio": lambda: self.cargo("serve_tokio", "serve_tokio"),
                "erlang": lambda: self.erlc("serve.erl"),
                "java": lambda: self.javac("Serve.java")}[name]()

    def call(self, name, prefix, workers, module, words):
        """The whole command; module and words: what is called in a virtual machine, and with what."""
        if name == "erlang":
            return prefix + ["+S", f"{workers}:{workers}", "+SDcpu", "1:1", "+SDio", "1", "+A", "1",
                             "+P", "4000000", "+Q", "65536", "+sbt", "u", "-noinput", "-noshell",
                             "-pa", self.out("erlang"), "-run", module, "main", *words]
        if name == "java":
            return prefix + [f"-Djdk.virtualThreadScheduler.parallelism={workers}",
                             f"-Djdk.virtualThreadScheduler.maxPoolSize={workers}",
                             "-cp", self.out("java"), module.capitalize(), *words]
        return prefix + words

    def command(self, name, words):
        if words[0].startswith("grow_"):
            return [self.native_path(name, "growth"), *words]
        more = ["flavor=current"] if name == "tokio-ct" else []
        return self.call(name, self.prefix[name], workers_of(words), "yard", words + more)

    def serve(self, name, kind, port, workers):
        """The command of a server and its environment; None if it has no such kind."""
        if plain_name(name) in NATIVE_SERVERS:
            by_kind, more, env = NATIVE_SERVERS[plain_name(name)]
            if kind not in by_kind:
                return None
            words = [] if more is None else [kind, *more]
            path = self.native_path(name, by_kind[kind])
            return [path, str(port), str(workers), *words], env
        words = [str(port), str(workers), kind]
        words += {"asio": ["callback"], "asio-co": ["coro"]}.get(name, [])
        return self.call(name, self.servers[name], workers, "serve", words), {}


def version_of(name):
    """Of what a server is built with; the yardstick's programs tell theirs themselves."""
    if name.startswith("sinew"):
        return ".".join(first_match(os.path.join(ROOT, "include", "sinew", "version.h"),
                                    rf"define SN_VERSION_{part}\s+(\d+)")
                        for part in ("MAJOR", "MINOR", "PATCH"))
    if name == "go":
        home = os.path.dirname(os.path.dirname(os.path.realpath(shutil.which("go") or "go")))
        return first_match(os.path.join(home, "VERSION"), r"^(go[\d.]+)")
    if name == "tokio":
        return first_match(os.path.join(PEERS, "serve_tokio", "Cargo.lock"),
                           r'name = "tokio"\nversion = "([^"]*)')
    if name == "java":
        home = os.path.dirname(find_jdk() or "")
        return first_match(os.path.join(home, "release"), r'JAVA_VERSION="([^"]*)')
    if name == "erlang":
        found = sorted(glob.glob("/usr/lib/erlang/releases/*/OTP_VERSION"))
        return "OTP " + first_match(found[-1], r"(.*)") if found else ""
    if name in ("asio", "asio-co"):
        return "Boost " + first_match("/usr/include/boost/version.hpp",
                                      r'define BOOST_LIB_VERSION "([\d_]+)').replace("_", ".")
    if name == "libuv":
        return ".".join(first_match("/usr/include/uv/version.h", rf"define UV_VERSION_{part}\s+(\d+)")
                        for part in ("MAJOR", "MINOR", "PATCH"))
    return ""
