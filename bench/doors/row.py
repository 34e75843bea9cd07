"""Row: one work in several memories, run in turns, and what Outcore must show against them."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass

from process import forget, run_process, warm_up

MIB = 2**20
OUTER_DIFFERENCE_MAX = 0.2  # of the first and the last run, beyond which there is no verdict


@dataclass
class Asked:
    """That one memory is at least so many times as fast as another."""

    title: str
    of: str
    against: str  # a memory, or "better": the faster of mmap and mmap-random
    ratio_min: float | None  # None: to stand beside the others, nothing is asked


@dataclass
class Row:
    name: str
    title: str
    make_work: Callable  # of a Place
    asked: list
    once: set  # memories that are too slow to be run again and again
    seconds_max: int = 180  # of one run
    is_program: bool = False  # counts in the mean of unmodified programs, by what is asked first


@dataclass
class Verdict:
    """One line of the table."""

    title: str
    rivals: str
    seconds: float | None
    ratio: float | None
    asked: str
    verdict: str
    peak: str
    rss: str


def allowance_bytes(data_bytes, budget_bytes):
    """What mapped memory costs beside the budget: page tables, metadata, slack. As bench/stage.cc
    has it; the rivals get it, too."""
    page_tables = data_bytes // 512
    metadata = data_bytes // 4096 * 16 + budget_bytes // 4096 * 64
    return page_tables + metadata + min(max(budget_bytes // 16, 2 * MIB), 16 * MIB)


def measure_own(row, work):
    """The memory of the program itself, by runs on hardly any data: the largest in any of the row's
    memories, as all get the same limit. Libraries, also Outcore's, are in the page cache before,
    and count for nobody."""
    own = 0
    for memory in work.memories:
        warm_up(*work.command(memory, True))
        taken = run_process(*work.command(memory, True), work.place.device)
        if taken.status != 0:
            raise SystemExit(f"bench-doors: {row.name} in {memory} does not start: "
                             f"{taken.errors.strip()[-300:] or taken.status}")
        own = max(own, taken.peak_bytes)
    return own


def measure(row, place, repeats, see):
    """Runs the row's memories in turns; `see` gets the line of each run. Returns all lines."""
    work = row.make_work(place)
    files = work.prepare()
    own_bytes = measure_own(row, work)
    own_bytes += getattr(work, "answer_bytes", 0)
    limit_bytes = own_bytes + work.budget_bytes + allowance_bytes(work.data_bytes,
                                                                  work.budget_bytes)
    lines = []
    for turn in range(repeats):
        for memory in work.memories:
            if turn > 0 and memory in row.once:
                continue
            forget(files)
            taken = run_process(*work.command(memory, False), work.place.device, limit_bytes,
                                row.seconds_max)
            line = line_of(row, work, memory, taken, work.result(taken))
            line.update(own_bytes=own_bytes, limit_bytes=limit_bytes)
            lines.append(line)
            see(line)
    work.clean_up()
    answers = {line["answer"] for line in lines if "answer" in line}
    if len(answers) != 1 or not all(line["checked"] for line in lines if not line["stopped"]):
        raise SystemExit(f"bench-doors: {row.name}: the answers are wrong or differ: {answers}")
    return lines


def line_of(row, work, memory, taken, result):
    """The run's line of JSON (docs/reference/benchmarks.md)."""
    is_stopped = taken.is_stopped or taken.is_killed or not result
    seconds = result.pop("seconds", taken.seconds)
    amount = result.pop("work", 0)
    line = {
        "row": row.name, "workload": row.name, "memory": memory, "store": str(work.place.folder),
        "device": work.place.device.name, "read_ahead_kb": work.place.device.read_ahead_kb(),
        "data_bytes": work.data_bytes, "budget_bytes": work.budget_bytes,
        "threads": work.threads, "processes": 1, "page_bytes": 4096, "seconds": seconds,
        "rate": 0 if is_stopped else amount / seconds, "unit": result.pop("unit", "1/s"),
        "p50_us": 0, "p99_us": 0, "peak_bytes": taken.peak_bytes,
        "fills": taken.major_faults, "read_bytes": taken.device_read_bytes,
        "written_bytes": taken.device_written_bytes, "limited": True, "stopped": is_stopped,
        "checked": bool(result.pop("is_right", False)), "rss_bytes": taken.rss_bytes,
        "killed": taken.is_killed, "context_switches": taken.switches,
        "major_faults": taken.major_faults, "device_read_bytes": taken.device_read_bytes,
        "device_written_bytes": taken.device_written_bytes,
    }
    if is_stopped:
        why = "the kernel ended it for want of memory" if taken.is_killed else \
            f"> {row.seconds_max} s, stopped"
        line["stopped_because"] = why
    if memory.startswith("outcore") and not is_stopped and not result.get("fills"):
        raise SystemExit(f"bench-doors: {row.name}: its data did not go through Outcore: "
                         f"try outcore run --explain")
    line.update(result)
    return line


# -- verdicts --


def runs_of(lines, memory):
    return [line for line in lines if line["memory"] == memory]


def median_seconds(lines, memory):
    return statistics.median(line["seconds"] for line in runs_of(lines, memory))


def is_unreliable(lines, memory):
    """Whether its first and last run differ so much that no ratio can be told."""
    seconds = [line["seconds"] for line in runs_of(lines, memory)]
    return abs(seconds[0] - seconds[-1]) > OUTER_DIFFERENCE_MAX * min(seconds[0], seconds[-1])


def has_finished(lines, memory):
    return all(not line["stopped"] for line in runs_of(lines, memory))


def judge(row, lines):
    """The row's lines of the table."""
    return [_judge_one(asked, lines) for asked in row.asked]


def _rival_of(asked, lines):
    if asked.against != "better":
        return asked.against
    mmaps = [m for m in ("mmap", "mmap-random") if runs_of(lines, m)]
    return min(mmaps, key=lambda m: (not has_finished(lines, m), median_seconds(lines, m)))


def _judge_one(asked, lines):
    rival = _rival_of(asked, lines)
    seconds, rival_seconds = median_seconds(lines, asked.of), median_seconds(lines, rival)
    ratio = rival_seconds / seconds
    if not has_finished(lines, asked.of):
        verdict = "NOT MET: " + runs_of(lines, asked.of)[-1].get("stopped_because", "stopped")
    elif asked.ratio_min is None:
        verdict = ""
    else:
        verdict = "met" if ratio >= asked.ratio_min else "NOT MET"
    noisy = [m for m in (asked.of, rival) if is_unreliable(lines, m)]
    if noisy:
        verdict += f" (unreliable: the outer runs of {', '.join(noisy)} differ by > 20 %)"
    mmaps = [m for m in ("mmap", "mmap-random") if runs_of(lines, m)]
    rivals = ", ".join(f"{'random' if m == 'mmap-random' else 'default'} "
                       f"{_spread(lines, m)}" for m in mmaps)
    peak = max(line["peak_bytes"] for line in runs_of(lines, asked.of))
    limit = runs_of(lines, asked.of)[0]["limit_bytes"]
    rss = max(line["rss_bytes"] for line in runs_of(lines, rival))
    return Verdict(asked.title, rivals, _spread(lines, asked.of), ratio,
                   "" if asked.ratio_min is None else f"{asked.ratio_min:.2f} x {asked.against}",
                   verdict, f"{peak // MIB} of {limit // MIB}", f"{rss // MIB}" if rss else "-")


def _spread(lines, memory):
    seconds = [line["seconds"] for line in runs_of(lines, memory)]
    middle = statistics.median(seconds)
    sign = "" if has_finished(lines, memory) else "> "
    if len(seconds) == 1:
        return f"{sign}{middle:.2f}"
    return f"{sign}{middle:.2f} ({min(seconds):.2f}-{max(seconds):.2f})"
