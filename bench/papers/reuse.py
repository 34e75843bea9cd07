"""reuse: what runs say of reuse distances, and of the paper's decision tree beside the defaults."""

import statistics
from dataclasses import dataclass

from decision_tree import BY_TREE, miss_bytes, share_within, touches_of
from page_tables import number

SHARES = (("1/16", 1 / 16), ("1/4", 1 / 4), ("1/2", 1 / 2), ("all", 1.0))  # of the data


def in_order(experiment, runs):
    """One of each point: distances hardly differ between runs of one work. What was stopped has
    none."""
    first = {}
    for run in runs:
        if not run["stopped"]:
            first.setdefault(run["point"], run)
    return [first[point.label] for point in experiment.points if point.label in first]


def percent(share):
    return f"{100 * share:.0f}"


def table(experiment, runs):
    head = ("application", "touches", "first", *(f"again within {name}" for name, _ in SHARES),
            "beside the last", "")
    rows = []
    for run in in_order(experiment, runs):
        reuse, touches = run["reuse"], touches_of(run["reuse"])
        one_in, lost = reuse["sampled_one_in"], reuse["lost_events"]
        said = [*([f"one page in {one_in} followed"] if one_in > 1 else []),
                *([f"{number(lost)} events lost"] if lost else [])]
        rows.append((run["point"], number(touches), percent(reuse["first"] / max(1, touches)),
                     *(percent(share_within(reuse, part * run["data_bytes"]))
                       for _, part in SHARES),
                     percent(reuse["sequential"]), ", ".join(said)))
    return head, rows


def curve(run):
    """Percent of the data that is touched between, or less; percent of the touches."""
    reuse, seen, points = run["reuse"], 0, []
    for bucket, touches in enumerate(reuse["again"]):
        seen += touches
        points.append((100 * (4096 << bucket) / run["data_bytes"],
                       100 * seen / max(1, touches_of(reuse))))
    return points


def budget_percent(runs):
    return statistics.median(100 * run["budget_bytes"] / run["data_bytes"] for run in runs)


@dataclass(frozen=True)
class BesideTree:
    point: str
    seen: dict
    choice: str
    miss_bytes: float  # that a miss brought in by default
    policy: str
    rate: float  # by default
    rate_by_tree: float


def beside_the_tree(experiment, runs):
    found = []
    for point in experiment.points:
        def median(column, label=point.label):
            here = [run for run in runs if (run["point"], run["column"]) == (label, column)]
            here.sort(key=lambda run: run["rate"])
            return here[len(here) // 2] if here else None

        default, by_tree = median("outcore"), median(BY_TREE)
        if default and by_tree:
            found.append(BesideTree(point.label, by_tree["seen"], by_tree["choice"],
                                    miss_bytes(default), default["policy"], default["rate"],
                                    by_tree["rate"]))
    return found


def tree_table(lines):
    head = ("application", "used of 16 KiB, %", "again within twice the memory, %",
            "written / read", "the tree chooses", "rate by it", "a miss brings in by default",
            "policy", "rate by default", "default over tree", "")
    rows = [(line.point, percent(line.seen["used"]), percent(line.seen["nearly"]),
             f"{line.seen['written']:.2f}", line.choice, number(line.rate_by_tree),
             f"{line.miss_bytes / 1024:.0f} KiB", line.policy, number(line.rate),
             f"{line.rate / line.rate_by_tree:.2f}" if line.rate_by_tree else "-", "")
            for line in lines]
    return head, rows
