# SPDX-License-Identifier: MIT
"""compare_report - what bench/compare has found, as text, as a page, and as a table for README.md.

The page is one file: no scripts, no fonts, nothing to fetch. Bars are medians on a linear scale
from zero, with a line from the smallest to the largest run; a bar that would be more than CLIP times
as long as the shortest is cut and ends in ». Curves have logarithmic axes; the figure behind a name
is the last value in times of the first. There are three kinds of them: lines S; rows that differ only
in the number of workers or connections; and lines G, how the cost of an operation grows, with what
callgrind counted beside the time, and a sentence that says what the growth is made of."""

import html
import math
import statistics

OURS = ("sinew", "sinew-coro", "sinew-epoll", "sinew-coro-epoll")
FLOORS = ("floor", "epoll", "uring")  # by hand; nobody is compared with these in the ranking
UNRANKED = ("cpu_ratio", "unfair", "own_ns", "tables_per_conn", "p50_ns of echo", "p50_ns of http")
CLIP = 15
FLAT_TIMES, FLAT_INSTRUCTIONS, MISSES_MORE = 1.25, 1.1, 1.0

COLOURS = {"sinew": "#0b6e4f", "sinew-coro": "#2fb57f", "sinew-epoll": "#3f8f2f",
           "sinew-coro-epoll": "#8fc31f", "go": "#00a7d0", "tokio": "#b7410e",
           "tokio-ct": "#e08a5b", "java": "#c9a100", "erlang": "#a4123f", "boost.fiber": "#5b5ea6",
           "asio": "#7d3cb5", "asio-co": "#b07fd9", "caf": "#8d6e97", "tbb": "#3a7ca5",
           "openmp": "#7a8b99", "libuv": "#6b8e23", "floor": "#555555", "epoll": "#555555",
           "uring": "#888888"}
COLOURS.update({name + ".was": "#bbbbbb" for name in OURS})  # those of another build
SERIES = {"ns_per_op": ("ns", "#0b6e4f"), "instructions": ("instructions", "#00a7d0"),
          "d1_misses": ("misses, first cache", "#e08a5b"),
          "ll_misses": ("misses, last cache", "#a4123f")}
AXES = {"grow_wakes": "One of n waiting tasks is woken, runs, and waits again",
        "grow_spawns": "A task is spawned and joined beside n waiting ones",
        "grow_timers": "One of n timers is cancelled and set again",
        "grow_sends": "The first of n waiters at a channel gets a value and waits again",
        "grow_leaves": "One of n waiters at a channel is cancelled, another comes",
        "grow_conns": "A request and its answer on one of n connections",
        "grow_children": "A child joins a scope of n and ends"}
WHY = {"grow_wakes": "A fiber, its record and its semaphore are seven to ten lines in pages of their own: "
                     "from some dozens of fibers on they are not in the first cache any more.",
       "grow_sends": "What is touched of a fiber, as with wakes; the queue is taken from at one end and "
                     "added to at the other.",
       "grow_leaves": "A stack and a record go and others come in their place, besides what a wake "
                      "touches; the queue is left without looking at the others in it.",
       "grow_timers": "A timer has two neighbours in the list of its slot, wherever they lie; they are "
                      "touched when it goes, and those of another slot when it comes.",
       "grow_conns": "Most of the time of this one is the kernel's."}


def number(x):
    if x >= 1e6:
        return f"{x / 1e6:,.2f} M"
    return f"{x:,.0f}" if x >= 100 else f"{x:.1f}" if x >= 10 else f"{x:.2f}"


def times(x):
    return f"x{x:,.0f}" if x >= 100 else f"x{x:.1f}" if x >= 10 else f"x{x:.2f}"


def ratio(a, b):
    return times(a / b) if b else "-"


def title(row):
    return f"{row['id']} {row['workload']}"


def ours(row):
    """The better of our two forms; None if there is none."""
    return min((row["cells"][name]["median"] for name in OURS if name in row["cells"]), default=None)


def reference(row):
    """What `x Sinew` is counted in: the fiber's figure, if it has one."""
    return next((row["cells"][name]["median"] for name in OURS if name in row["cells"]), None)


def ranked(row):
    return sorted(row["cells"].items(), key=lambda item: item[1]["median"])


def is_peer(name):
    return name not in OURS + FLOORS and not name.endswith(".was")


def place(row):
    """(how many peers are faster than us, the fastest peer and its median); None without us."""
    peers = [(name, c["median"]) for name, c in ranked(row) if is_peer(name)]
    mine = ours(row)
    if mine is None or not peers or not is_ranked(row):
        return None
    return sum(median < mine for _, median in peers), peers[0]


def is_ranked(row):
    """Of what is asked twice, and of what only explains, nobody is the first."""
    return not {row["metric"], f"{row['metric']} of {row['workload'].split()[0]}"} & set(UNRANKED)


def behind(result):
    """Rows in which a peer is faster, as sentences."""
    told = []
    for row in compared(result):
        found = place(row)
        if found and found[0] > 0:
            name, median = found[1]
            told.append(f"{title(row)}, {row['unit']}: {number(ours(row))} against {name}'s "
                        f"{number(median)} ({ratio(ours(row), median)})")
    return told


def compared(result):
    return [row for row in result["rows"] if row["id"] not in ("S", "F", "G")]


def summary(result):
    placed = [place(row) for row in compared(result)]
    placed = [p for p in placed if p]
    first = sum(p[0] == 0 for p in placed)
    return f"Sinew is first in {first} of {len(placed)} figures that it has with peers."


# ---- text ---------------------------------------------------------------------------------------

def row_text(row):
    floor = f", floor {number(row['floor'])}" if row["floor"] else ""
    lines = [f"{title(row)}: {row['unit']}{floor}"]
    for name, c in ranked(row):
        spread = 100 * (c["max"] - c["min"]) / c["median"] if c["median"] else 0
        lines.append(f"    {name:<12}{number(c['median']):>10}{'' if c['trusted'] else ' ~':<2}"
                     f"  min {number(c['min']):>9}  spread {spread:4.0f} %"
                     f"  {ratio(c['median'], reference(row)):>7} of Sinew"
                     f"  {ratio(c['median'], row['floor']):>7} of the floor"
                     f"  {len(c['values'])}/{c['runs']}")
    return "\n".join(lines)


def machine_text(result):
    m = result["machine"]
    return (f"{m['cpu']}, {m['cpus']} processors, {m['memory_gib']} GiB; {m['kernel']}; "
            f"{m['system']}; {result['when']}")


def noise_text(result):
    told = (f"{result['samples']} runs, {result['quiet']} of them quiet, {result['fair']} quiet or "
            f"fair; in {result['wall_s']:.0f} s others used {result['foreign_s']:.0f} s of processor")
    if result["discarded"]:
        told += (f"; {result['discarded']} more were discarded, because others used more than "
                 f"{result['discard_share']:g} of a processor")
    return told + (f"; INCOMPLETE, at least {result['todo']} runs are missing" if result["todo"] else "")


def versions_text(result):
    return "; ".join(f"{name} {version}" for name, version in result["versions"].items() if version)


def text(result):
    parts = [machine_text(result), versions_text(result), ""]
    parts += [row_text(row) for row in result["rows"] if row["id"] != "G"]
    parts += [""] + growth_text(result) + [""] + axes_text(result)
    parts += ["", noise_text(result), summary(result)]
    parts += ["  behind: " + line for line in behind(result)]
    parts += [f"without {name}: {why}" for name, why in result["missing"].items()]
    parts += ["FAILED " + line for line in result["failed"]]
    parts += ["DIFFERENT RESULTS " + line for line in result["disagree"]]
    if any(not c["trusted"] for row in result["rows"] for c in row["cells"].values()):
        parts.append("~ others used the machine during all of its runs")
    return "\n".join(parts)


# ---- bars ---------------------------------------------------------------------------------------

LABEL, WIDTH, ROW, FIGURES = 132, 384, 22, 210


def bar(name, c, top, scale, row):
    """One bar, with its spread and figures."""
    length = min(c["median"] * scale, WIDTH)
    cut = c["median"] * scale > WIDTH
    low, high = (LABEL + min(c[key] * scale, WIDTH) for key in ("min", "max"))
    mid = top + ROW / 2
    weight = ' font-weight="bold"' if name in OURS else ""
    figures = f"{number(c['median'])}{'' if c['trusted'] else ' ~'}"
    if reference(row) and name != "sinew":
        figures += f"  {ratio(c['median'], reference(row))}"
    tip = (f"{name}: median {number(c['median'])}, {number(c['min'])} to {number(c['max'])}, "
           f"{len(c['values'])} of {c['runs']} runs")
    return (f'<g><title>{html.escape(tip)}</title>'
            f'<text x="{LABEL - 6}" y="{mid + 4}" text-anchor="end"{weight}>{name}</text>'
            f'<rect x="{LABEL}" y="{top + 4}" width="{max(length, 1):.1f}" height="{ROW - 8}" '
            f'fill="{COLOURS[name]}"/>'
            f'<path class="spread" d="M{low:.1f} {mid}H{high:.1f}M{low:.1f} {mid - 3}v6'
            f'M{high:.1f} {mid - 3}v6"/>'
            f'<text x="{LABEL + WIDTH + 8}" y="{mid + 4}">{"» " if cut else ""}{figures}</text></g>')


def bars(row):
    cells = ranked(row)
    smallest = min(c["median"] for _, c in cells) or 1
    longest = min(max(c["max"] for _, c in cells), CLIP * smallest) or 1
    scale = WIDTH / longest
    height = ROW * len(cells)
    drawn = [bar(name, c, i * ROW, scale, row) for i, (name, c) in enumerate(cells)]
    if row["floor"] and row["floor"] * scale <= WIDTH:
        x = LABEL + row["floor"] * scale
        drawn.append(f'<path class="floor" d="M{x:.1f} 0V{height}"><title>floor: '
                     f'{number(row["floor"])}</title></path>')
    floor = f" · floor {number(row['floor'])}" if row["floor"] else ""
    return (f'<figure><figcaption><b>{html.escape(row["workload"])}</b><br>{html.escape(row["unit"])}'
            f'{floor}</figcaption><svg viewBox="0 0 {LABEL + WIDTH + FIGURES} {height}" role="img">'
            + "".join(drawn) + "</svg></figure>")


# ---- curves -------------------------------------------------------------------------------------

PLOT_W, PLOT_H, MARGIN, EDGE = 520, 260, 60, 24
LEAST = 0.01  # below which a logarithmic axis does not go


SIZES = ("n", "iters", "rounds", "ops", "window_ms", "window_s", "warm_s", "warm_ms")  # not a kind of work
DERIVED = {"workers": None, "conns": ("ns_per_op", "server_ns", "p99_ns", "bytes_per_conn")}


def kind_of(row, axis):
    """The workload without what differs along the axis."""
    words = row["workload"].split()
    return " ".join([words[0]] + [w for w in words[1:] if w.split("=")[0] not in (axis, *SIZES)])


def curves_of(result):
    """(workload, axis, unit): peer: [(x, cell)]; those with at least two points."""
    found = {}
    for row in result["rows"]:
        values = dict(word.split("=") for word in row["workload"].split()[1:])
        axes = [row["axis"]] if row["id"] == "S" else derived_axes(row)
        for axis in axes:
            group = found.setdefault((kind_of(row, axis), axis, row["unit"]), {})
            for name, c in row["cells"].items():
                group.setdefault(name, {})[float(values[axis])] = c
    return {group: {name: sorted(points.items()) for name, points in peers.items()
                    if len(points) > 1}
            for group, peers in found.items() if any(len(p) > 1 for p in peers.values())}


def derived_axes(row):
    if row["id"] in ("F", "G"):
        return []
    first = row["metric"] in ("ns_per_op", "p50_ns") and is_ranked(row)
    return [axis for axis, metrics in DERIVED.items() if f" {axis}=" in row["workload"]
            and (first if metrics is None else row["metric"] in metrics)]


ROUNDS_OF_SPREAD = 10  # fewer say little about their quarters


def growth(points):
    """How many times the first the last one is: what is flat stays near 1.

    If every round has made both, it is the middle of the rounds' own ratios, for the speed of the
    machine changes from minute to minute, and both had the same; with many rounds also the quarters."""
    first, last = points[0][1], points[-1][1]
    if len(first["values"]) != len(last["values"]) or not all(first["values"]):
        return ratio(last["median"], first["median"])
    ratios = sorted(b / a for a, b in zip(first["values"], last["values"]))
    middle = times(statistics.median(ratios))
    if len(ratios) < ROUNDS_OF_SPREAD:
        return middle
    quarter = len(ratios) // 4
    return f"{middle} ({times(ratios[quarter])} to {times(ratios[-1 - quarter])})"


def growth_text(result):
    return [f"{workload} over {axis} ({unit}), last of first: "
            + ", ".join(f"{name} {growth(points)}" for name, points in peers.items())
            for (workload, axis, unit), peers in curves_of(result).items()]


# ---- how cost grows -----------------------------------------------------------------------------

def axes_of(result):
    """workload: metric: [(n, cell)]"""
    found = {}
    for row in result["rows"]:
        if row["id"] == "G" and "sinew" in row["cells"]:
            words = row["workload"].split()
            n = float(dict(word.split("=") for word in words[1:])[row["axis"]])
            found.setdefault(words[0], {}).setdefault(row["metric"], []).append(
                (n, row["cells"]["sinew"]))
    return {name: {metric: sorted(points, key=lambda p: p[0]) for metric, points in metrics.items()}
            for name, metrics in found.items()}


def ends(metrics, metric):
    """The first median and the last."""
    points = metrics.get(metric, [])
    return (points[0][1]["median"], points[-1][1]["median"]) if points else None


def verdict(name, metrics):
    """What the growth is made of, as sentences."""
    ns, instructions = ends(metrics, "ns_per_op"), ends(metrics, "instructions")
    if ns is None:
        return "not measured"
    points = metrics["ns_per_op"]
    told = (f"{number(ns[0])} ns at {points[0][0]:,.0f}, {number(ns[1])} at {points[-1][0]:,.0f}: "
            f"{ratio(ns[1], ns[0])}.")
    if instructions is None:
        return told + " Instructions were not counted."
    told += f" Instructions: {number(instructions[0])} and {number(instructions[1])}."
    if instructions[1] > FLAT_INSTRUCTIONS * instructions[0]:
        return told + " THE ALGORITHM GROWS: more of them are executed for the same operation."
    if ns[1] <= FLAT_TIMES * ns[0]:
        return told + " Flat."
    if not all(c["trusted"] for _, c in points):
        told += " (Others used the machine: times are doubtful.)"
    near, far = ends(metrics, "d1_misses"), ends(metrics, "ll_misses")
    if near[1] - near[0] < MISSES_MORE and far[1] - far[0] < MISSES_MORE:
        return (f"{told} Neither these nor cache misses grow ({number(near[0])} and {number(near[1])}): "
                "it is what is not counted, the kernel or the translation of addresses. "
                f"{WHY.get(name, '')}").rstrip()
    told += (f" The same work at every size; what grows is the memory: {number(near[0])} to "
             f"{number(near[1])} misses of the first cache, {number(far[0])} to {number(far[1])} of "
             "the last.")
    return f"{told} {WHY.get(name, '')}".rstrip()


def axes_text(result):
    return [f"{name} ({AXES.get(name, '')}): {verdict(name, metrics)}"
            for name, metrics in axes_of(result).items()]


def axis_figure(name, metrics):
    series = {SERIES[metric][0]: points for metric, points in metrics.items()}
    colours = {told: colour for told, colour in SERIES.values()}
    drawn = plot("n", series, colours, list(series)[:1])
    return (f"<figure><figcaption><b>{html.escape(AXES.get(name, name))}</b><br>"
            f"{html.escape(name)}, for each operation</figcaption>{drawn}"
            f"<p>{html.escape(verdict(name, metrics))}</p></figure>")


# ---- drawing curves -----------------------------------------------------------------------------

def decades(low, high):
    return range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)


def power(exponent):
    return number(10.0 ** exponent) if 0 <= exponent < 4 else f"10^{exponent}"


def ticks(low, high):
    """Where the grid's lines are: powers of ten, or if these say little, also twice and five times."""
    powers = [10.0 ** e for e in decades(low, high)]
    if high / low >= 10:
        return powers
    steps = sorted(p * k for p in powers for k in (1, 2, 5))
    first = max([t for t in steps if t <= low], default=steps[0])
    last = min([t for t in steps if t >= high], default=steps[-1])
    return [t for t in steps if first <= t <= last] if last > first else [first, first * 10]


def tick_text(value):
    exponent = math.log10(value)
    if exponent < 3.9:
        return f"{value:,g}"
    return power(round(exponent)) if abs(exponent - round(exponent)) < 1e-9 else number(value)


def grid(x_of, y_of, xs, ys):
    drawn = []
    for value in xs:
        x = x_of(value)
        drawn.append(f'<path class="grid" d="M{x:.1f} {y_of(ys[-1]):.1f}V{y_of(ys[0]):.1f}"/>'
                     f'<text x="{x:.1f}" y="{PLOT_H - 24}" text-anchor="middle">{tick_text(value)}'
                     '</text>')
    for value in ys:
        y = y_of(value)
        drawn.append(f'<path class="grid" d="M{MARGIN} {y:.1f}H{PLOT_W - EDGE}"/>'
                     f'<text x="{MARGIN - 6}" y="{y + 4:.1f}" text-anchor="end">{tick_text(value)}'
                     '</text>')
    return drawn


def plot(axis, series, colours, thick):
    """Lines of (x, cell), and the names with their growth below them."""
    xs = [x for points in series.values() for x, _ in points]
    values = [max(c["median"], LEAST) for points in series.values() for _, c in points]
    x_ticks, y_ticks = ticks(min(xs), max(xs)), ticks(min(values), max(values))

    def x_of(x):
        share = math.log(x / x_ticks[0]) / math.log(x_ticks[-1] / x_ticks[0])
        return MARGIN + share * (PLOT_W - MARGIN - EDGE)

    def y_of(y):
        share = math.log(max(y, LEAST) / y_ticks[0]) / math.log(y_ticks[-1] / y_ticks[0])
        return PLOT_H - 40 - share * (PLOT_H - 60)

    drawn = grid(x_of, y_of, x_ticks, y_ticks)
    for name, points in series.items():
        path = "L".join(f"{x_of(x):.1f} {y_of(c['median']):.1f}" for x, c in points)
        drawn.append(f'<path d="M{path}" fill="none" stroke="{colours[name]}" '
                     f'stroke-width="{3 if name in thick else 1.5}"/>')
        for x, c in points:
            drawn.append(f'<path class="spread" d="M{x_of(x):.1f} {y_of(c["min"]):.1f}V'
                         f'{y_of(c["max"]):.1f}"/><circle cx="{x_of(x):.1f}" '
                         f'cy="{y_of(c["median"]):.1f}" r="3" fill="{colours[name]}"><title>{name}, '
                         f'{axis}={x:,.0f}: {number(c["median"])}</title></circle>')
    drawn.append(f'<text x="{PLOT_W / 2}" y="{PLOT_H - 6}" text-anchor="middle">{axis}</text>')
    legend = ", ".join(f'<span style="color:{colours[name]}">■</span> {name} {growth(points)}'
                       for name, points in series.items())
    return (f'<svg viewBox="0 0 {PLOT_W} {PLOT_H}" role="img">' + "".join(drawn)
            + f"</svg><p>{legend}</p>")


def curve(group, peers):
    workload, axis, unit = group
    return (f'<figure><figcaption><b>{html.escape(workload)}</b> over {html.escape(axis)}<br>'
            f'{html.escape(unit)}</figcaption>{plot(axis, peers, COLOURS, OURS)}</figure>')


# ---- README.md ----------------------------------------------------------------------------------

BEGIN, END = "<!-- begin: written by bench/compare -->", "<!-- end -->"


def best_peer(row):
    found = place(row)
    return found[1] if found else None


def markdown(result):
    """A line for each figure that is ranked: ours, and the best of the others."""
    lines = [machine_text(result) + ".", "", versions_text(result) + ".", "", noise_text(result) + ".",
             "", summary(result), "",
             "| workload | unit | Sinew, fibers | coroutines | best peer | | peer / Sinew | floor |",
             "|---|---|--:|--:|--:|---|--:|--:|"]
    for row in compared(result):
        peer = best_peer(row)
        if peer is None:
            continue
        mine = [row["cells"].get(name) for name in ("sinew", "sinew-coro")]
        cells = [number(c["median"]) + ("" if c["trusted"] else " ~") if c else "" for c in mine]
        lines.append(f"| {title(row)} | {row['unit']} | {cells[0]} | {cells[1]} | {number(peer[1])} | "
                     f"{peer[0]} | {ratio(peer[1], ours(row))} | "
                     f"{number(row['floor']) if row['floor'] else ''} |")
    lines += ["", "How cost grows:", ""]
    lines += [f"- {AXES.get(name, name)}: {verdict(name, metrics)}"
              for name, metrics in axes_of(result).items()]
    return "\n".join(lines)


def with_table(text, result):
    """The index page with the table of this result in its place."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        return text
    return f"{before}{BEGIN}\n\n{markdown(result)}\n\n{END}{after}"


# ---- the page -----------------------------------------------------------------------------------

SECTIONS = {"W1": "Spawn and join", "W2": "Yield", "W3": "Ping-pong", "W4": "Channel",
            "W5": "Memory for a task that waits", "W6": "Skynet: a tree of tasks",
            "W7": "Fibonacci: fork and join", "W8": "Timers", "W9": "Mutex", "W10": "Actors",
            "W11": "Waking an idle worker", "N1": "Echo over TCP", "N2": "HTTP: hello by hand",
            "N3": "Memory for an idle connection", "F": "The floor: what the machine charges"}

STYLE = """
:root { color-scheme: light dark; --line: #8884; --text: #222; --paper: #fff; }
@media (prefers-color-scheme: dark) { :root { --text: #ddd; --paper: #161616; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--paper);
       max-width: 1500px; margin: 2rem auto; padding: 0 1rem; }
section { display: flex; flex-wrap: wrap; gap: 1rem 2rem; }
h2 { flex-basis: 100%; border-bottom: 1px solid var(--line); }
figure { margin: 0; flex: 1 1 520px; max-width: 730px; }
svg { width: 100%; } svg text { font-size: 12px; fill: var(--text); }
.spread { stroke: var(--text); fill: none; } .grid { stroke: var(--line); fill: none; }
.floor { stroke: #d33; stroke-dasharray: 4 3; }
table { border-collapse: collapse; font-size: 13px; }
td, th { padding: .15rem .6rem; border-bottom: 1px solid var(--line); text-align: right;
         white-space: nowrap; }
td:nth-child(-n+2), th:nth-child(-n+2) { text-align: left; }
.wide { overflow-x: auto; } .best { font-weight: bold; }
"""


def listing(heading, lines):
    if not lines:
        return ""
    items = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
    return f"<h3>{heading}</h3><ul>{items}</ul>"


def table(result):
    names = [name for name in COLOURS if any(name in row["cells"] for row in compared(result))]
    head = "".join(f"<th>{name}</th>" for name in names)
    body = []
    for row in compared(result):
        least = min(c["median"] for c in row["cells"].values())
        cells = []
        for name in names:
            c = row["cells"].get(name)
            kind = ' class="best"' if c and c["median"] == least else ""
            mark = "" if not c or c["trusted"] else " ~"
            cells.append(f"<td{kind}>{number(c['median']) + mark if c else ''}</td>")
        floor = number(row["floor"]) if row["floor"] else ""
        body.append(f"<tr><td>{html.escape(title(row))}</td><td>{html.escape(row['unit'])}</td>"
                    f"{''.join(cells)}<td>{floor}</td></tr>")
    return (f'<div class="wide"><table><tr><th>workload</th><th>unit</th>{head}<th>floor</th></tr>'
            f'{"".join(body)}</table></div>')


def page(result):
    parts = [f"<h1>Sinew and its peers{', quick form' if result['quick'] else ''}</h1>",
             f"<p>{html.escape(machine_text(result))}<br>{html.escape(versions_text(result))}<br>"
             f"{html.escape(noise_text(result))}. Medians of {result['rounds']} rounds or more; the "
             "thin line is from the smallest to the largest run; the dashed red one is the floor; "
             "~: others used the machine during all runs. What each workload is: "
             "bench/peers/WORKLOADS.md.</p>",
             f"<p><b>{html.escape(summary(result))}</b></p>",
             listing("Where a peer is faster", behind(result)),
             listing("Failed", result["failed"]),
             listing("Different results", result["disagree"]),
             listing("Not measured", [f"{n}: {why}" for n, why in result["missing"].items()]),
             "<h2>All figures</h2>", table(result)]
    for ident, heading in SECTIONS.items():
        rows = [row for row in result["rows"] if row["id"] == ident]
        if rows:
            parts.append(f"<section><h2>{ident} · {heading}</h2>{''.join(map(bars, rows))}</section>")
    curves = curves_of(result)
    for heading, chosen in (("Over the number of workers", ("workers",)),
                            ("Over the number of connections", ("conns",)),
                            ("Over the number of tasks, timers and waiters", ("batch", "tasks", "n"))):
        drawn = "".join(curve(g, peers) for g, peers in curves.items() if g[1] in chosen)
        if drawn:
            parts.append(f"<section><h2>{heading}</h2>{drawn}</section>")
    axes = axes_of(result)
    if axes:
        drawn = "".join(axis_figure(name, metrics) for name, metrics in axes.items())
        parts.append(f"<section><h2>How the cost of an operation grows</h2>{drawn}</section>")
    return ('<!doctype html><html lang="en"><meta charset="utf-8"><title>Sinew and its peers</title>'
            f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style>'
            + "\n".join(parts) + "</html>\n")
