# SPDX-License-Identifier: MIT
"""compare_report - what bench/compare has found, as text and as a page.

The page is one file: no scripts, no fonts, nothing to fetch. Bars are medians on a linear scale
from zero, with a line from the smallest to the largest run; a bar that would be more than CLIP times
as long as the shortest is cut and ends in ». Curves have logarithmic axes; the figure behind a name
is the last value in times of the first."""

import html
import math

OURS = ("sinew", "sinew-coro")
CLIP = 15

COLOURS = {"sinew": "#0b6e4f", "sinew-coro": "#2fb57f", "go": "#00a7d0", "tokio": "#b7410e",
           "tokio-ct": "#e08a5b", "java": "#c9a100", "erlang": "#a4123f", "boost.fiber": "#5b5ea6",
           "caf": "#8d6e97", "tbb": "#3a7ca5", "openmp": "#7a8b99", "libuv": "#6b8e23",
           "floor": "#555555"}


def number(x):
    if x >= 1e6:
        return f"{x / 1e6:,.2f} M"
    return f"{x:,.0f}" if x >= 100 else f"{x:.1f}"


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


def place(row):
    """(how many peers are faster than us, the fastest peer and its median); None without us."""
    peers = [(name, c["median"]) for name, c in ranked(row) if name not in OURS]
    mine = ours(row)
    if mine is None or not peers:
        return None
    return sum(median < mine for _, median in peers), peers[0]


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
    return [row for row in result["rows"] if row["id"] not in ("S", "F")]


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
    return (f"{result['samples']} runs, {result['quiet']} of them quiet, {result['fair']} quiet or "
            f"fair; in {result['wall_s']:.0f} s others used {result['foreign_s']:.0f} s of processor")


def text(result):
    parts = [machine_text(result),
             "; ".join(f"{name} {version}" for name, version in result["versions"].items()), ""]
    parts += [row_text(row) for row in result["rows"]]
    parts += [""] + growth_text(result)
    parts += ["", noise_text(result), summary(result)]
    parts += ["  behind: " + line for line in behind(result)]
    parts += [f"without {name}: {why}" for name, why in result["missing"].items()]
    parts += ["FAILED " + line for line in result["failed"]]
    parts += ["DIFFERENT RESULTS " + line for line in result["disagree"]]
    if any(not c["trusted"] for row in result["rows"] for c in row["cells"].values()):
        parts.append("~ others used the machine during all of its runs")
    return "\n".join(parts)


# ---- bars ---------------------------------------------------------------------------------------

LABEL, WIDTH, ROW, FIGURES = 96, 420, 22, 210


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


def curves_of(result):
    """(workload, axis, unit): peer: [(x, cell)]"""
    found = {}
    for row in result["rows"]:
        if row["id"] != "S":
            continue
        words = row["workload"].split()
        values = dict(word.split("=") for word in words[1:])
        group = (words[0], row["axis"], row["unit"])
        for name, c in row["cells"].items():
            found.setdefault(group, {}).setdefault(name, []).append((float(values[row["axis"]]), c))
    return {group: {name: sorted(points, key=lambda p: p[0]) for name, points in peers.items()}
            for group, peers in found.items()}


def growth(points):
    """How many times the first the last one is: what is flat stays near 1."""
    return ratio(points[-1][1]["median"], points[0][1]["median"])


def growth_text(result):
    return [f"{workload} over {axis} ({unit}), last of first: "
            + ", ".join(f"{name} {growth(points)}" for name, points in peers.items())
            for (workload, axis, unit), peers in curves_of(result).items()]


def decades(low, high):
    return range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)


def power(exponent):
    return number(10.0 ** exponent) if 0 <= exponent < 4 else f"10^{exponent}"


def grid(x_of, y_of, x_decades, y_decades):
    drawn = []
    for e in x_decades:
        x = x_of(10.0 ** e)
        drawn.append(f'<path class="grid" d="M{x:.1f} {y_of(10.0 ** y_decades[-1]):.1f}V'
                     f'{y_of(10.0 ** y_decades[0]):.1f}"/><text x="{x:.1f}" y="{PLOT_H - 24}" '
                     f'text-anchor="middle">{power(e)}</text>')
    for e in y_decades:
        y = y_of(10.0 ** e)
        drawn.append(f'<path class="grid" d="M{MARGIN} {y:.1f}H{PLOT_W - EDGE}"/>'
                     f'<text x="{MARGIN - 6}" y="{y + 4:.1f}" text-anchor="end">{power(e)}</text>')
    return drawn


def curve(group, peers):
    workload, axis, unit = group
    xs = [x for points in peers.values() for x, _ in points]
    ys = [max(c["median"], 0.1) for points in peers.values() for _, c in points]
    x_decades, y_decades = decades(min(xs), max(xs)), decades(min(ys), max(ys))
    x_span = max(1, x_decades[-1] - x_decades[0])
    y_span = max(1, y_decades[-1] - y_decades[0])

    def x_of(x):
        return MARGIN + (math.log10(x) - x_decades[0]) / x_span * (PLOT_W - MARGIN - EDGE)

    def y_of(y):
        share = (math.log10(max(y, 0.1)) - y_decades[0]) / y_span
        return PLOT_H - 40 - share * (PLOT_H - 60)

    drawn = grid(x_of, y_of, x_decades, y_decades)
    for name, points in peers.items():
        path = "L".join(f"{x_of(x):.1f} {y_of(c['median']):.1f}" for x, c in points)
        drawn.append(f'<path d="M{path}" fill="none" stroke="{COLOURS[name]}" '
                     f'stroke-width="{3 if name in OURS else 1.5}"/>')
        for x, c in points:
            drawn.append(f'<circle cx="{x_of(x):.1f}" cy="{y_of(c["median"]):.1f}" r="3" '
                         f'fill="{COLOURS[name]}"><title>{name}, {axis}={x:,.0f}: '
                         f'{number(c["median"])}</title></circle>')
    drawn.append(f'<text x="{PLOT_W / 2}" y="{PLOT_H - 6}" text-anchor="middle">{axis}</text>')
    legend = ", ".join(f'<span style="color:{COLOURS[name]}">■</span> {name} {growth(points)}'
                       for name, points in peers.items())
    return (f'<figure><figcaption><b>{html.escape(workload)}</b> over {html.escape(axis)}<br>'
            f'{html.escape(unit)}</figcaption><svg viewBox="0 0 {PLOT_W} {PLOT_H}" role="img">'
            + "".join(drawn) + f"</svg><p>{legend}</p></figure>")


# ---- the page -----------------------------------------------------------------------------------

SECTIONS = {"W1": "Spawn and join", "W2": "Yield", "W3": "Ping-pong", "W4": "Channel",
            "W5": "Memory for a task that waits", "W6": "Skynet: a tree of tasks",
            "W7": "Fibonacci: fork and join", "W8": "Timers", "W9": "Mutex", "W10": "Actors",
            "W11": "Waking an idle worker", "F": "The floor: what the machine charges"}

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
    versions = "; ".join(f"{name} {version}" for name, version in result["versions"].items())
    parts = [f"<h1>Sinew and its peers{', quick form' if result['quick'] else ''}</h1>",
             f"<p>{html.escape(machine_text(result))}<br>{html.escape(versions)}<br>"
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
    if curves:
        drawn = "".join(curve(group, peers) for group, peers in curves.items())
        parts.append(f"<section><h2>How cost grows</h2>{drawn}</section>")
    return ('<!doctype html><html lang="en"><meta charset="utf-8"><title>Sinew and its peers</title>'
            f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style>'
            + "\n".join(parts) + "</html>\n")
