#!/usr/bin/env python3
"""make_sample_runs: recorded runs that nobody ran, and pages of them, to check the report's page.

Usage: make_sample_runs.py FOLDER [TEMPLATE D3]. Writes NAME.json for each sample, and with the
page's template and the text of d3 also NAME.html, as `outcore report` would.
"""

import html
import json
import math
import pathlib
import random
import re
import sys

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
COLUMNS, ROWS = 120, 64
HOSTILE = [
    "</script><script>window.hostile = 1</script>",
    "<img src=x onerror=\"window.hostile = 2\">",
    "\"quoted\" & 'quoted' &lt;not markup&gt; `${window.hostile = 3}`",
    "Ключ 鍵 مفتاح 🗝 \u202eright to left",
    "<!-- <b>bold</b> ]]> \\u003c \x07 bell",
]


def latency(rng, faults, p50_ns, tail):
    """A histogram in which half of the faults took about p50_ns, and some much longer."""
    buckets = [0] * 40
    middle = math.log2(p50_ns)
    for i in range(40):
        near = math.exp(-((i + 0.5 - middle) ** 2) / 1.1)
        far = tail * math.exp(-((i + 0.5 - middle - 4) ** 2) / 3)
        buckets[i] = int(faults * (near + far) / 1.95 * rng.uniform(0.95, 1.05))
    total, seen, edges = sum(buckets), 0, {}
    for i, n in enumerate(buckets):
        seen += n
        for name, share in (("p50_ns", .5), ("p90_ns", .9), ("p99_ns", .99), ("p999_ns", .999)):
            if name not in edges and seen >= share * total:
                edges[name] = 1 << (i + 1)
    return {"buckets": buckets, **edges, "max_ns": int(1.3 * edges["p999_ns"])}


def heat(rng, seconds, size, density):
    """A map whose cells density(time, offset) fills; both run from 0 to 1."""
    cells = {"fills": [], "evictions": [], "refaults": []}
    for column in range(COLUMNS):
        for row in range(ROWS):
            expected = density(column / COLUMNS, row / ROWS)
            n = int(expected * rng.uniform(0.6, 1.4) + rng.random())
            if n == 0:
                continue
            cells["fills"].append([column, row, n])
            if column > 12 and n > 1:
                cells["evictions"].append([column, row, max(1, int(n * rng.uniform(.7, 1.1)))])
            if column > 18 and n > 3:
                cells["refaults"].append([column, row, max(1, int(n * rng.uniform(.3, .6)))])
    return {"columns": COLUMNS, "rows": ROWS, "seconds": seconds, "bytes": size, **cells}


def timeline(rng, seconds, steps, budget, rates):
    """Steps in which memory fills up first; rates are averages a second."""
    step = seconds / steps
    line = {"step_s": step, "budget_bytes": [budget] * steps, "used_bytes": []}
    names = ("stalled_s", "fills", "read_bytes", "written_bytes", "evictions", "refaults")
    for name in names:
        line[name] = []
    used = 0
    for i in range(steps):
        warm = min(1, i / (0.12 * steps))
        wave = (1 + 0.18 * math.sin(i / 9)) * rng.uniform(0.85, 1.15)
        for name in names:
            late = warm if name in ("evictions", "refaults") else 1
            value = rates.get(name, 0) * step * wave * late
            line[name].append(round(value, 4) if name == "stalled_s" else int(value))
        used = min(budget * 0.995, used + budget / (0.1 * steps))
        line["used_bytes"].append(int(used * rng.uniform(0.985, 1)))
    return line


def counters(**known):
    names = ("faults fills prefetch_fills zero_fills minor_faults write_faults rescues evictions "
             "write_backs read_bytes written_bytes read_requests write_requests fill_errors "
             "write_back_errors waits_for_frame waits_for_page wait_for_frame_ns wait_for_page_ns "
             "prefetch_dropped flushes discarded learnt_fills budget_shrinks budget_growths "
             "refaults fault_ns").split()
    return {name: known.get(name, 0) for name in names}


def environment():
    return {"outcore": "1.0.0", "kernel": "6.18.0", "processors": 8, "memory_bytes": 24 * GIB,
            "memory_limit_bytes": None, "host": "node7"}


def site(function, file, line, share, pattern, uri, faults=1_420_000, stalled=38.4):
    sequential, strided, rand = pattern
    return {"module": "/usr/bin/kraken2", "offset": 74565 + line, "function": function,
            "file": file, "line": line, "faults": int(faults * share), "share": share,
            "stalled_s": round(stalled * share, 1), "file_uri": uri,
            "pattern": {"sequential": sequential, "strided": strided, "random": rand}}


def kraken2():
    """A classifier that reads a hash table at random, with a quarter of it in memory."""
    rng = random.Random(1)
    budget, size, seconds = 256 * MIB, GIB, 61.5
    table, taxonomy = "file:///data/db/hash.k2d", "file:///data/db/taxo.k2d"
    total = counters(faults=1_420_311, fills=1_388_204, prefetch_fills=412_006, rescues=18_022,
                     evictions=1_734_800, read_bytes=7_373_832_192, read_requests=1_401_772,
                     refaults=1_012_440, fault_ns=38_410_000_000, waits_for_page=9_811,
                     wait_for_page_ns=410_000_000, waits_for_frame=120)
    hot = [rng.random() ** 3 * 2.2 + 0.25 for _ in range(ROWS)]
    where = heat(rng, seconds, size, lambda t, y: 165 * hot[int(y * ROWS)] * (1 - .25 * (t > .62)))
    small = heat(rng, seconds, 6 * MIB, lambda t, y: 9 if t < .03 else 0.05 * (y < .4))
    files = [
        {"uri": table, "size_bytes": size, "page_bytes": 4096, "access": "read-only",
         "resident_bytes": 251 * MIB, "touched_bytes": 1003 * MIB, "heat": where,
         "fetches": "4 KiB 61 %, 8 KiB 28 %, 64 KiB 11 %; 7 % of what came along unused",
         "counters": {**total, "faults": 1_418_600, "read_bytes": 7_366_000_000}},
        {"uri": taxonomy, "size_bytes": 6 * MIB, "page_bytes": 4096, "access": "read-only",
         "resident_bytes": 2 * MIB, "touched_bytes": 5 * MIB, "heat": small,
         "fetches": "64 KiB 90 %, 512 KiB 10 %; 31 % of what came along unused",
         "counters": counters(faults=1_711, fills=1_690, prefetch_fills=422, evictions=900,
                              read_bytes=7_832_192, refaults=310, fault_ns=61_000_000)}]
    sites = [site("CompactHashTable::Get", "compact_hash.cc", 120, .81, (.03, .02, .95), table),
             site("CompactHashTable::Get", "compact_hash.cc", 131, .112, (.88, 0, .12), table),
             site("Taxonomy::GetAncestor", "taxonomy.cc", 77, .031, (.2, .45, .35), taxonomy),
             site("MinimizerScanner::NextMinimizer", "mmscanner.cc", 204, .017, (1, 0, 0), table),
             site(None, None, 0, .009, (.5, 0, .5), table)]
    sites[-1]["module"] = "/usr/lib/x86_64-linux-gnu/libc.so.6"
    curve = [(1, 1_388_204), (1.25, 1_171_000), (1.5, 962_000), (2, 610_300), (2.5, 402_400),
             (3, 290_100), (4, 256_900), (6, 256_100)]
    return {
        "format": "outcore-run", "version": 1,
        "program": {"command": "kraken2 --db /data/db --memory-mapping --threads 4 reads.fq",
                    "pid": 4711, "started": "2026-11-25T16:00:00Z", "seconds": seconds},
        "environment": environment(),
        "settings": {"budget_bytes": budget, "delivery": "in-thread", "policy": "s3-fifo",
                     "page_bytes": 4096, "frames": "private", "readahead": "auto",
                     "low_watermark": 94, "high_watermark": 98, "learn": None},
        "verdict": {
            "headline": "Waiting for the disk took 62 % of the time.",
            "sentences": [
                "7 times as many bytes were read as the program touched: pages came back 1,012,440 "
                "times after they had been evicted.",
                "The budget limits this run. Faults are random, so reading ahead cannot help.",
                "Twice the budget would save 56 % of the misses, and three times 79 %."],
            "next": ["outcore run --budget 768M -- kraken2 --db /data/db --memory-mapping "
                     "--threads 4 reads.fq"]},
        "counters": total,
        "gauges": {"budget_bytes": budget, "used_bytes": 254 * MIB, "used_bytes_max": 255 * MIB,
                   "bounce_bytes": 2 * MIB, "metadata_bytes": 5 * MIB, "degraded": 0},
        "latency": latency(rng, 1_420_311, 21_000, .07),
        "timeline": timeline(rng, seconds, 123, budget,
                             {"stalled_s": .63, "fills": 22_500, "read_bytes": 119_900_000,
                              "evictions": 29_800, "refaults": 17_800}),
        "files": files, "sites": sites, "sampled_faults": 20_000,
        "miss_curve": {"sampled_one_in": 16, "budget_bytes": budget,
                       "points": [{"budget_bytes": int(budget * f), "misses": n}
                                  for f, n in curve]},
        "reuse": {"sampled_one_in": 16, "first": 256_768,
                  "again": [352, 16, 0, 96, 208, 480, 1_024, 2_112, 3_040, 4_896, 8_704, 15_008,
                            20_800, 28_928, 38_400, 60_800, 121_600, 402_304, 303_680, 96]},
        "tuner": [{"at_s": 1.5, "what": "fetch of hash.k2d: 4 KiB instead of 64 KiB"},
                  {"at_s": 9.5, "what": "policy: di-mmap instead of s3-fifo"},
                  {"at_s": 31.0, "what": "policy: s3-fifo instead of di-mmap"}],
        "lost_events": 12_044}


def scan():
    """A sequential scan of 24 GiB in half an hour that writes a little."""
    rng = random.Random(2)
    run = kraken2()
    size, seconds, budget = 24 * GIB, 1875.0, 2 * GIB
    total = counters(faults=101_000, fills=98_304, prefetch_fills=6_193_152, evictions=5_770_000,
                     read_bytes=size, written_bytes=410 * MIB, write_backs=104_960,
                     refaults=12, fault_ns=96_000_000_000)
    line = heat(rng, seconds, size, lambda t, y: 3000 if abs(t - y) < .012 else 0)
    run.update(
        program={"command": "wc -l /data/reads.fastq", "pid": 90, "seconds": seconds,
                 "started": "2026-11-25T16:00:00Z"},
        verdict={"headline": "The device is the limit: reading ahead keeps it busy.",
                 "sentences": ["5 % of the time was lost waiting."], "next": []},
        counters=total, tuner=[], lost_events=0,
        gauges={"budget_bytes": budget, "used_bytes": budget, "used_bytes_max": budget},
        latency=latency(rng, 101_000, 900_000, .3),
        timeline=timeline(rng, seconds, 240, budget,
                          {"stalled_s": .051, "fills": 52, "read_bytes": size / seconds,
                           "written_bytes": 410 * MIB / seconds, "evictions": 3077}),
        files=[{"uri": "file:///data/reads.fastq", "size_bytes": size, "page_bytes": 65536,
                "access": "read-write", "resident_bytes": budget, "touched_bytes": size,
                "counters": total, "heat": line, "fetches": ""}],
        miss_curve={"sampled_one_in": 64, "budget_bytes": budget,
                    "points": [{"budget_bytes": budget << i, "misses": 6_291_456 - i}
                               for i in range(4)]},
        reuse={"sampled_one_in": 64, "first": 98_304, "again": []})
    run["sites"] = [site("count_lines", "wc.c", 310, 1.0, (.99, 0, .01),
                         "file:///data/reads.fastq", 101_000, 96.0)]
    return run


def two_processes():
    """The second waits longer than the first, and so comes first; the third only started them."""
    parent, child = scan(), kraken2()
    child["timeline"]["stalled_s"] = [s * 7 for s in child["timeline"]["stalled_s"]]
    child["counters"]["fault_ns"] *= 7
    child["program"]["pid"] = 4712
    shell = nearly_empty()
    shell["program"]["command"] = "sh -c 'wc -l /data/reads.fastq; kraken2 --db /data/db'"
    return [parent, shell, child]


def late():
    """Half of the faults and nearly all of them take nearly as long, and some far less."""
    run = kraken2()
    run["latency"] = {"buckets": [0] * 9 + [3] * 5 + [400_000, 90_000] + [0] * 20,
                      "p50_ns": 1 << 15, "p90_ns": 1 << 16, "p99_ns": 1 << 16,
                      "p999_ns": 1 << 16, "max_ns": 60_000}
    return run


def nearly_empty():
    return {"format": "outcore-run", "version": 1,
            "program": {"command": "true", "pid": 1, "seconds": 0.004,
                        "started": "2026-11-25T16:00:00Z"},
            "environment": environment(), "settings": {"budget_bytes": GIB, "delivery": "messages"},
            "verdict": {"headline": "This run had no faults.", "sentences": [], "next": []},
            "counters": counters(),
            "gauges": {"budget_bytes": GIB, "used_bytes": 0, "used_bytes_max": 0},
            "latency": {"buckets": [0] * 40, "p50_ns": 0, "p90_ns": 0, "p99_ns": 0, "p999_ns": 0,
                        "max_ns": 0},
            "timeline": {"step_s": 0.5, "stalled_s": [], "fills": []}, "files": [], "sites": [],
            "sampled_faults": 0, "miss_curve": None, "tuner": [], "lost_events": 0}


def messages():
    """As event threads see it: no place in the code, and a budget that changes."""
    run = kraken2()
    for file in run["files"]:
        file["delivery"] = "messages"
    run["sites"], run["sampled_faults"] = [], 0
    run["why_no_sites"] = "Faults came by messages, which do not show it."  # by `outcore report`
    budgets = run["timeline"]["budget_bytes"]
    run["timeline"]["budget_bytes"] = [b if i < 60 else b // 2 for i, b in enumerate(budgets)]
    del run["files"][1]["heat"]
    return run


def calls():
    """As Python's programs: not one fault, all pages came in by calls."""
    run = kraken2()
    for of in (run, *run["files"]):
        counted = of["counters"]
        counted.update(call_waits=counted["faults"], call_wait_ns=counted["fault_ns"])
        counted.update(faults=0, fault_ns=0)
    run["sites"], run["sampled_faults"] = [], 0
    run["why_no_sites"] = "Touches alone are seen."  # by `outcore report`
    return run


def nulled(value):
    """The same shape with nothing known."""
    return {name: None for name in value} if isinstance(value, dict) else None


def hostile():
    run = kraken2()
    long_name = "std::unordered_map<" + "std::basic_string<char>, " * 60 + "int>::find"
    run["program"]["command"] = " ".join(HOSTILE) + " --filter " + "x" * 3000
    run["verdict"] = {"headline": HOSTILE[0], "sentences": HOSTILE, "next": [HOSTILE[1]]}
    run["environment"]["host"] = HOSTILE[1]
    run["settings"] = {text: text for text in HOSTILE} | {"constructor": "x", "__proto__": "y"}
    for i, text in enumerate(HOSTILE * 2):
        run["files"].append({**run["files"][1], "uri": "file:///data/" + text,
                             "access": text, "fetches": text})
        run["sites"].append({**site(text, text, i, .001, (0, 0, 1), text), "module": text})
    run["sites"].append({**run["sites"][0], "function": long_name, "share": .4})
    run["tuner"] = [{"at_s": i * .8, "what": HOSTILE[i % 5]} for i in range(40)]
    run["counters"][HOSTILE[0]] = 1
    return run


def wrong_kinds():
    """Values of other kinds than promised, and lists of unequal lengths."""
    run = kraken2()
    run["program"].update(pid="4711", seconds="long", started=5)
    run["counters"].update(faults="many", read_bytes=None, fills=-1)
    run["timeline"]["fills"] = run["timeline"]["fills"][:7] + ["x", None]
    run["latency"]["buckets"] = [None, "3", 5]
    run["files"] = [None, 7, {"uri": 3, "heat": {"columns": "9"}}, run["files"][0]]
    run["files"][3]["heat"]["fills"] += [[500, 500, 3], ["a", 1, 1], None, [1, 1, -4]]
    run["sites"] = [None, {"share": 2.5, "pattern": {"random": "all"}}]
    run["miss_curve"]["points"] = [{"budget_bytes": 0, "misses": 1}, None, {"misses": 3}]
    run["reuse"].update(first=-4, again=[None, "many", 7, -2] + [1] * 90)
    run["verdict"] = ["no", "object"]
    return run


def short_cells(cells):
    """The short form of a map: counts row by row; -n stands for n empty cells."""
    counts = [0] * (COLUMNS * ROWS)
    for column, row, n in cells:
        counts[row * COLUMNS + column] = n
    out = []
    for n in counts:
        if n:
            out.append(n)
        elif out and out[-1] < 0:
            out[-1] -= 1
        else:
            out.append(-1)
    return out


def ten_minutes():
    """As large as they get: 8 files whose maps have something in nearly each cell."""
    rng = random.Random(5)
    run = kraken2()
    file = run["files"][0]
    run["files"] = [{**file, "uri": f"file:///data/part-{i}.bin"} for i in range(8)]
    for file in run["files"]:
        cells = heat(rng, 600.0, GIB, lambda t, y: 40 if (t + y) % .4 < .2 else 4)
        file["heat"] = {**cells, **{kind: short_cells(cells[kind])
                                    for kind in ("fills", "evictions", "refaults")}}
    run["program"]["seconds"] = 600.0
    return run


def samples():
    full = kraken2()
    return {"kraken2": [full], "scan": [scan()], "processes": two_processes(),
            "empty": [nearly_empty()], "missing": [{"format": "outcore-run", "version": 1}],
            "nulls": [{name: nulled(value) for name, value in full.items()}],
            "hostile": [hostile()], "messages": [messages()], "wrong": [wrong_kinds()],
            "large": [ten_minutes()], "late": [late()],
            "calls": [calls()]}


def make_page(template, d3, runs, title):
    """The page of these runs, made as the program makes it."""
    data = json.dumps({"runs": runs}, ensure_ascii=False, separators=(",", ":"))
    values = {"@TITLE@": html.escape(title), "/*@D3@*/": d3, "<!--@TEXT@-->": "",
              "/*@RUNS@*/": data.replace("<", "\\u003c")}
    for mark in values:
        if template.count(mark) != 1:
            raise ValueError(f"the template must contain {mark} exactly once")
    marks = "|".join(re.escape(mark) for mark in values)
    return re.sub(marks, lambda found: values[found[0]], template)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    template, d3 = (pathlib.Path(path).read_text() for path in sys.argv[2:4]) \
        if len(sys.argv) > 3 else (None, None)
    for name, runs in samples().items():
        (folder / f"{name}.json").write_text(json.dumps({"runs": runs}, ensure_ascii=False))
        if template:
            command = (runs[0].get("program") or {}).get("command") or "a run"
            (folder / f"{name}.html").write_text(make_page(template, d3, runs, command[:80]))


if __name__ == "__main__":
    main()
