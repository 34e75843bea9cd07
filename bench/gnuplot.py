"""gnuplot: the pictures of tables as PNG: bars side by side, and lines. Needs gnuplot."""

import pathlib
import subprocess

from bench_command import Failed

STYLE = """set terminal pngcairo size {size} noenhanced font 'sans,10'
set title "{title}"
set xlabel "{axis}"
set ylabel "{unit}"
set grid ytics lc '#dddddd'
set key outside right top Left reverse
set border 3
set tics nomirror
"""
BARS = """set style data histograms
set style histogram clustered gap 1
set style fill solid 0.85 border -1
set boxwidth 0.9
"""
# The same memory has the same colour in all pictures.
COLOURS = {"outcore": "#1f6fb4", "mmap": "#d98d2b", "mmap-random": "#7a9e3d", "direct": "#888888",
           "mmap-dontneed": "#b5a642", "two-pass": "#5c8a8a",
           "dram": "#8e5ea2", "swap": "#c0504d"}
MORE_COLOURS = ("#1f6fb4", "#5fb0d8", "#2a9d8f", "#d98d2b", "#7a9e3d", "#8e5ea2", "#c0504d",
                "#8c6d4f", "#b8860b")


LABELS_CHARACTERS_MAX = 60  # beside each other, below an axis


def draw_bars(path, title, axis, unit, groups, is_log=False):
    """`groups`: of a label below the axis, the heights by name; the names are those of the first.
    0 is no bar. A logarithmic axis begins at half of the lowest bar."""
    names = list(next(iter(groups.values())))
    heights_there = [h for heights in groups.values() for h in heights.values() if h]
    low = min(heights_there, default=1) / 2
    script = [STYLE.format(size="760,340", title=title, axis=axis, unit=unit), BARS,
              f"set logscale y\nset yrange [{low:.3g}:*]" if is_log else "set yrange [0:*]",
              "$runs << EOD", "label " + " ".join(f'"{name}"' for name in names)]
    if max(max(heights.values()) for heights in groups.values()) >= 1e4:
        script.insert(2, "set format y '%.1s %c'")
    if sum(len(label) for label in groups) > LABELS_CHARACTERS_MAX:
        script.insert(2, "set xtics rotate by -30")
    script += [f'"{label}" ' + " ".join(f"{heights.get(name, 0):.6g}" for name in names)
               for label, heights in groups.items()]
    plots = [f"$runs using {i}:xtic(1) title columnheader lc rgb '{colour}'"
             for i, colour in enumerate(_colours_of(names), 2)]
    _run(path, [*script, "EOD", "plot " + ", ".join(plots)])


def draw_lines(path, title, axis, unit, curves, limit=None):
    """`curves`: of a name, the points (percent, times); times are on a logarithmic scale. `limit`:
    (name, times), a level that is asked."""
    script = [STYLE.format(size="760,400", title=title, axis=axis, unit=unit),
              "set logscale y", "set xrange [0:105]"]
    for number, points in enumerate(curves.values()):
        script += [f"$d{number} << EOD", *(f"{x} {y:.6g}" for x, y in sorted(points)), "EOD"]
    plots = [f"$d{number} using 1:2 with linespoints lw 2 lc rgb '{colour}' title \"{name}\""
             for number, (name, colour) in enumerate(zip(curves, _colours_of(curves)))]
    if limit is not None:
        plots.append(f"{limit[1]} with lines dt 2 lc rgb '#444444' title \"{limit[0]}\"")
    _run(path, [*script, "plot " + ", ".join(plots)])


def draw_shares(path, title, axis, unit, curves, mark):
    """`curves`: of a name, the points (percent, percent of all), the first on a logarithmic axis.
    `mark`: (name, percent), a place on that axis."""
    script = [STYLE.format(size="760,400", title=title, axis=axis, unit=unit),
              "set logscale x", "set xrange [0.1:200]", "set yrange [0:100]",
              "$mark << EOD", f"{mark[1]:.6g} 0", f"{mark[1]:.6g} 100", "EOD"]
    for number, points in enumerate(curves.values()):
        script += [f"$d{number} << EOD", *(f"{x:.6g} {y:.6g}" for x, y in points), "EOD"]
    plots = [f"$d{number} using 1:2 with linespoints lw 2 lc rgb '{colour}' title \"{name}\""
             for number, (name, colour) in enumerate(zip(curves, _colours_of(curves)))]
    plots.append(f"$mark using 1:2 with lines dt 2 lc rgb '#444444' title \"{mark[0]}\"")
    _run(path, [*script, "plot " + ", ".join(plots)])


def _colours_of(names):
    spare = iter([colour for colour in MORE_COLOURS
                  if colour not in {COLOURS.get(name) for name in names}])
    return [COLOURS.get(name) or next(spare) for name in names]


def _run(path, script):
    drawn = subprocess.run(["gnuplot", "-d"], input="\n".join(script).encode() + b"\n",
                           capture_output=True, check=False)
    if drawn.returncode != 0 or not drawn.stdout.startswith(b"\x89PNG"):
        said = drawn.stderr.decode(errors="replace").strip().splitlines() or ["it said nothing"]
        raise Failed(f"gnuplot cannot draw {path}: {said[-1]}")
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(drawn.stdout)
