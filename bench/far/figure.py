"""Figure: how much slower STREAM is with less local memory, as figures 6 and 7 of DLM."""

import pathlib
import subprocess

from engines import Failed

PARTS = """set terminal pngcairo size 720,460 noenhanced font 'sans,10'
set title '{title}'
set xlabel 'local memory / data, %'
set ylabel 'time / time in plain memory'
set logscale y
set xrange [0:105]
set grid lc '#dddddd'
set key outside right top Left reverse
set border 3
set tics nomirror
"""


def draw(path, title, curves):
    """``curves``: of a page size, the points (percent, slower). Needs gnuplot."""
    script = [PARTS.format(title=title)]
    for number, points in enumerate(curves.values()):
        script.append(f"$d{number} << EOD")
        script += [f"{percent} {slower}" for percent, slower in sorted(points)]
        script.append("EOD")
    plots = [f"$d{number} using 1:2 with linespoints lw 2 title '{name}'"
             for number, name in enumerate(curves)]
    script.append("plot " + ", ".join(plots))
    drawn = subprocess.run(["gnuplot", "-d"], input="\n".join(script).encode() + b"\n",
                           capture_output=True, check=False)
    if drawn.returncode != 0 or not drawn.stdout.startswith(b"\x89PNG"):
        said = drawn.stderr.decode(errors="replace").strip().splitlines() or ["it said nothing"]
        raise Failed(f"gnuplot cannot draw {path}: {said[-1]}")
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(drawn.stdout)
