"""sections: the table and the picture of an experiment, made of its runs."""

from collections.abc import Callable
from dataclasses import dataclass

import gnuplot
import reuse
from page_tables import number
from decision_tree import BY_TREE
from verdict import (MEMORY, columns_of, judge_rates, judge_slower, judge_spread, judge_traffic,
                     plain_rate)


@dataclass(frozen=True)
class Section:
    caption: str  # what the numbers are
    head: tuple[str, ...]
    rows: list[tuple[str, ...]]
    names: str  # of what is drawn
    draw: Callable | None  # of a path; None: there is no picture


def section_of(experiment, runs):
    return KINDS[experiment.shows](experiment, runs)


def times(value):
    return "stopped" if value == 0 else f"{value:.3g} x"


def _asked(line, words):
    if not line.is_asked:
        return ""
    if line.is_over_met and not line.is_met:
        return f"{words}: met over mmap, **not** beside {line.rival}"
    return f"{words}: {'met' if line.is_met else '**not met**'}"


def _with_paper(experiment, head, rows):
    """With what the paper has at a point, where it tells that for any."""
    told = {point.label: point.paper for point in experiment.points}
    if not any(told.values()):
        return head, rows
    return (*head[:-1], "paper", head[-1]), [(*row[:-1], told[row[0]], row[-1]) for row in rows]


_TOO_HIGH = 8  # times ours: beside such a bar all others would be too low to be told apart


def _rates(experiment, runs):
    lines = judge_rates(experiment, runs)
    columns = [c for c in columns_of(experiment) if any(c in line.values for line in lines)]
    over = " ".join(("over", ", ".join(word for word in experiment.beside if word)))
    has_rivals = bool(experiment.rivals)
    has_over = any(line.over for line in lines) or not has_rivals
    rows = []
    for line in lines:
        is_stopped = line.values["outcore"] == 0
        ratio = (f"{line.ratio:.2f} x {line.rival}" if line.ratio else
                 "stopped" if is_stopped else "all others stopped")
        rows.append((line.point, *(number(line.values.get(c)) for c in columns),
                     *((f"{line.over:.2f}" if line.over else "",) if has_over else ()),
                     *((ratio,) if has_rivals else ()),
                     _asked(line, f"{experiment.asked:g} asked")))

    # Plain memory is in the table: beside its bar nobody could tell the others apart.
    drawn = [c for c in columns if c not in MEMORY or c == experiment.rivals[0]]

    def draw(path):
        groups = {line.point: {c: line.values.get(c, 0) for c in drawn} for line in lines}
        ours = max(line.values["outcore"] for line in lines)
        highest = max(max(heights.values()) for heights in groups.values())
        gnuplot.draw_bars(path, experiment.title, experiment.axis, lines[0].unit, groups,
                          is_log=ours > 0 and highest > _TOO_HIGH * ours)

    head = (experiment.axis, *columns, *((over,) if has_over else ()),
            *(("ratio",) if has_rivals else ()), "")
    head, rows = _with_paper(experiment, head, rows)
    return Section(lines[0].unit, head, rows, ", ".join(drawn), draw)


def _slower(experiment, runs):
    lines = judge_slower(experiment, runs)
    names = list(lines[0].values)
    rows = [(line.point, *(times(line.values[name]) for name in names),
             _asked(line, f"at most {experiment.asked:g} asked")) for line in lines]
    plain = f"{number(plain_rate(runs))} {lines[0].unit}"

    def draw(path):
        curves = {name: [(int(line.point), line.values[name]) for line in lines
                         if line.values[name]] for name in names}
        gnuplot.draw_lines(path, f"{experiment.title}: far memory against plain memory",
                           experiment.axis, "time / time in plain memory", curves,
                           (f"asked at {experiment.at[0]} %", experiment.asked))

    head, rows = _with_paper(experiment, (experiment.axis, *names, ""), rows)
    return Section(f"times over those in plain memory ({plain})", head, rows, ", ".join(names),
                   draw)


def _spread(experiment, runs):
    lines = judge_spread(experiment, runs)
    keys = list(lines[0].values)
    rows = [(line.point, *(f"{line.values[key]:.3g}" for key in keys), f"{line.more['spread']:.1%}",
             _asked(line, f"at most {experiment.asked:.0%} asked")) for line in lines]

    def draw(path):
        seconds = {c: [0 if r["stopped"] else r["seconds"] for r in runs if r["column"] == c]
                   for c in columns_of(experiment)}
        groups = {f"run {i + 1}": {c: s[i] if i < len(s) else 0 for c, s in seconds.items() if s}
                  for i in range(len(seconds["outcore"]))}
        gnuplot.draw_bars(path, experiment.title, "", "s", groups)

    return Section("seconds", ("memory", *keys, "spread", ""), rows,
                   ", ".join(line.point for line in lines), draw)


def _traffic(experiment, runs):
    lines = judge_traffic(experiment, runs)
    columns, keys = columns_of(experiment), [name for name, _ in experiment.keys]

    def cell(line, column):
        moved = [line.values.get(f"{column}; {key}" if key else column) for key in keys]
        return "stopped" if 0 in moved or None in moved else "; ".join(f"{m:.3g}" for m in moved)

    # Of what is no matrix it is what must move, or nobody knows.
    has_accesses = experiment.workload == "matmul"
    rows = [(line.point, *((f"{line.more['accessed']:.3g}",) if has_accesses else ()),
             *(cell(line, c) for c in columns), _asked(line, f"at most {experiment.asked:g} asked"))
            for line in lines]
    head = (experiment.axis, *(("accessed",) if has_accesses else ()), *columns, "")
    head, rows = _with_paper(experiment, head, rows)

    def draw(path):
        if len(lines) == 1 and len(keys) > 1:
            groups = {key: {c: lines[0].values.get(f"{c}; {key}", 0) for c in columns}
                      for key in keys}
            gnuplot.draw_bars(path, experiment.title, "", lines[0].point, groups, is_log=True)
            return
        last = f"; {keys[-1]}" if keys[-1] else ""
        groups = {line.point: {c: line.values.get(c + last, 0) for c in columns} for line in lines}
        gnuplot.draw_bars(path, experiment.title, experiment.axis,
                          f"times, {keys[-1] or 'written'}", groups, is_log=len(lines) > 1)

    return Section("; ".join(key for key in keys if key) or lines[0].unit, head, rows,
                   ", ".join(columns), draw)


def _figures(_experiment, runs):
    """Each run is a figure, which says what is asked."""
    rows = []
    for run in runs:
        asked = ""
        if run["asked"]:
            bound = "at most" if run["is_most"] else "at least"
            asked = f"{bound} {run['asked']:.3g} asked: {'met' if run['is_met'] else '**not met**'}"
        rows.append((run["name"], f"{run['value']:.3g} {run['unit']}", run["how"], asked))
    return Section("figures", ("figure", "measured", "how", ""), rows, "", None)


def _reuse(experiment, runs):
    head, rows = reuse.table(experiment, runs)

    def draw(path):
        curves = {run["point"]: reuse.curve(run) for run in reuse.in_order(experiment, runs)}
        gnuplot.draw_shares(path, experiment.title, "touched between, % of the data",
                            "% of the touches that were seen", curves,
                            ("the budget of most", reuse.budget_percent(runs)))

    return Section("touches that were seen; of these, %", head, rows,
                   ", ".join(point.label for point in experiment.points), draw)


def _tree(experiment, runs):
    lines = reuse.beside_the_tree(experiment, runs)
    head, rows = reuse.tree_table(lines)

    def draw(path):
        groups = {line.point: {"outcore": 1, BY_TREE: line.rate_by_tree / line.rate}
                  for line in lines if line.rate}
        gnuplot.draw_bars(path, experiment.title, "", "rate, by default = 1", groups)

    head, rows = _with_paper(experiment, head, rows)
    return Section("rates; shares of a profile", head, rows, f"outcore, {BY_TREE}", draw)


KINDS = {"rates": _rates, "slower": _slower, "spread": _spread, "traffic": _traffic,
         "figures": _figures, "reuse": _reuse, "tree": _tree}


def print_section(experiment, section):
    print(f"{experiment.title} ({experiment.paper}, {experiment.place}); {experiment.claim}")
    lines = [section.head, *section.rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(section.head))]
    for line in lines:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
