#!/usr/bin/env python3
"""table: the experiments of the papers at a small size, beside mmap, plain memory and swap.

tools/bench_papers.sh (`make bench-papers`) makes the device and names the paths. page.py draws the
pages from the file of its runs.
"""

import dataclasses
import json
import os
import shutil
import signal
import sys
import time

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import bench_command  # noqa: E402
import decision_tree  # noqa: E402
import kraken  # noqa: E402
import processor_time  # noqa: E402
import real_genomes  # noqa: E402
import static_programs  # noqa: E402
import table_options  # noqa: E402
from bench_command import Failed  # noqa: E402
from engines import Engines  # noqa: E402
from experiment import (BY_HAND, CEPH, FAR, FAST, KRAKEN, RIVALS, STATIC,  # noqa: E402
                        is_ours, options_of)
from experiments import EXPERIMENTS  # noqa: E402
from larger import TIMES_MAX, can_grow, is_power_of_two, larger  # noqa: E402
from s3d import S3dRuns  # noqa: E402
from sections import print_section, section_of  # noqa: E402
from verdict import behind, columns_of  # noqa: E402

ROOM_BYTES = 3 << 29  # of any experiment at its small size, on the fast device
FAR_BYTES = 96 << 20  # at most, of data on several servers
REPEATS = 1  # of which all pages take half an hour


def run(options, engines, experiment, point, column):
    """One run in its own process and cgroup: its lines of JSON, most often one."""
    folder = options.folder if experiment.on == FAST else options.disk
    workload, own = workload_of(experiment, point.options)
    words = [*real_genomes.words_of(experiment, options),
             *(engines.ceph().uri(experiment.name) if word == CEPH else word.format(folder=folder)
               for word in own), "--dir", folder]
    variables = dict(point.variables)
    if experiment.shows != "figures":  # which are of Outcore alone
        words += [*options_of(column), "--limit", experiment.limit_seconds]
    is_heap = workload == "graph-construct" or "--table" in words  # built by each run
    if experiment.on == FAST and "--store" not in point.options and not is_heap:
        words.append("--keep")  # the data is the same for the next run
    if experiment.on == FAR and is_ours(column):
        words += ["--store", engines.redis_uri(experiment.name)]
        variables["REDISCLI_AUTH"] = engines.password
    return bench_command.lines_of(options.outcore, workload, *words, **variables)


def workload_of(experiment, words):
    """And the words that are its options."""
    return (experiment.workload, words) if experiment.workload else (words[0], words[1:])


def run_by_hand(options, engines, experiment, point, column):
    def one(words, variables):
        asked = dataclasses.replace(point, options=words, variables=tuple(variables.items()))
        (line,) = run(options, engines, experiment, asked, "outcore")
        return line

    return decision_tree.lines_of(one, point.options, column)


def run_static(options, engines, experiment, point, column):
    """dlm data begins as zeros, in a store that is new: what runs before have left goes."""
    store = {}
    if is_ours(column):
        engines.redis().ask("FLUSHALL")
        store = {"OUTCORE_STORE": engines.far_uri(point.servers, FAR_BYTES) if point.servers
                 else engines.redis_uri(experiment.name), "REDISCLI_AUTH": engines.password}
    _, budget = point.options
    return static_programs.lines_of(options.outcore, experiment.workload,
                                    experiment.options.split(), int(budget.rstrip("%")), store,
                                    experiment.limit_seconds)


def measure(options, engines, s3d, experiment, see):
    """All points, the columns in turns: lines of JSON with the experiment's, point's and column's
    names."""
    without = set()
    is_s3d = experiment.by == RIVALS
    for point in experiment.points:
        for turn in range(experiment.repeats or options.repeats):
            for column in columns_of(experiment):
                if column in without:
                    continue
                try:
                    if is_s3d:
                        lines = s3d.line(experiment, point, column, turn)
                    elif experiment.by == KRAKEN:
                        lines = kraken.lines_of(options, experiment)
                    elif experiment.by in (STATIC, BY_HAND):
                        run_it = run_static if experiment.by == STATIC else run_by_hand
                        lines = run_it(options, engines, experiment, point, column)
                    else:
                        lines = run(options, engines, experiment, point, column)
                except Failed as why:
                    # Not every disk can have swap, nor every machine each library.
                    if column != "swap" and (is_ours(column) or not is_s3d):
                        raise
                    print(f"bench-papers: {experiment.name}: without {column}: {why}",
                          file=sys.stderr)
                    without.add(column)
                    continue
                for line in lines:
                    see({**line, "row": experiment.name, "point": point.label, "column": column})


def profile(options, engines, s3d, experiment, runs, see):
    """Once more what is to be explained, ours and the best rival's: what the processors did
    meanwhile."""
    by_label = {point.label: point for point in experiment.points}
    for one in behind(experiment, runs):
        both = [("outcore", by_label[one.point], "outcore")]
        if one.column:
            both.append((one.column, by_label[one.base], one.other))
        for column, point, name in both:
            def work(point=point, column=column):
                if experiment.by == RIVALS:
                    return s3d.line_anew(experiment, point, column)
                measured = run_static if experiment.by == STATIC else run
                return measured(options, engines, experiment, point, column)

            names = {RIVALS: S3dRuns.process_of, STATIC: lambda _: f"{experiment.workload}-"}
            process = names.get(experiment.by, lambda _: "outcore")(column)
            (line, *_), samples = processor_time.sample(work)
            since = line["started_ns"] / 1e9
            during = samples, since, since + line["seconds"], (process,)
            see({"profile": experiment.name, "point": one.point, "column": name,
                 "seconds": line["seconds"], "rate": line["rate"], "unit": line["unit"],
                 "by_kind": processor_time.seconds_by_kind(*during),
                 "by_function": processor_time.own_functions(*during)})


def describe(line):
    if "profile" in line:
        kinds = ", ".join(f"{kind} {s:.2f}" for kind, s in list(line["by_kind"].items())[:4])
        return f"  {line['profile']} {line['point']}: {line['column']}: seconds of {kinds}, …"
    start = f"  {line['row']} {line['point']}: {line['column']}: "
    if "rate" not in line:
        return f"{start}{line['name']}: {line['value']:.4g} {line['unit']}"
    return start + ("stopped" if line["stopped"] else f"{line['rate']:.4g} {line['unit']}")


def make_room(folder, times):
    """Data stays for the experiments that need the same, as long as there is room for others."""
    if shutil.disk_usage(folder).free >= ROOM_BYTES * times or not os.path.ismount(folder):
        return  # what is no device of our own is not ours to empty
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)


def keep(path, lines):
    if path is not None:
        with open(path, "a", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)


def measure_all(options, wanted, engines):
    """Whether every experiment could be measured."""
    is_whole, measuring, profiling = True, 0.0, 0.0
    s3d = S3dRuns(options.programs, options.folder)
    for experiment in wanted:
        runs, began = [], time.monotonic()

        def see(line, runs=runs):
            line = {**line, "times": options.times}
            if "profile" not in line:
                runs.append(line)
            else:
                keep(options.json_file, [line])
            print(describe(line), file=sys.stderr, flush=True)

        try:
            make_room(options.folder, options.times)
            measure(options, engines, s3d, experiment, see)
        except Failed as why:
            print(f"bench-papers: {experiment.name}: {why}", file=sys.stderr)
            is_whole = False
            continue
        finally:
            engines.end_ceph()
        keep(options.json_file, runs)  # of a row that is whole
        print_section(experiment, section_of(experiment, runs))
        took = time.monotonic() - began
        measuring += took
        if options.profile:
            began = time.monotonic()
            try:
                profile(options, engines, s3d, experiment, runs, see)
            except Failed as why:
                print(f"bench-papers: {experiment.name}: without its profile: {why}",
                      file=sys.stderr)
            profiling += time.monotonic() - began
        print(f"  {experiment.name} took {took:.0f} s", file=sys.stderr)
    profiles = f", and {profiling / 60:.1f} of profiles" if options.profile else ""
    print(f"bench-papers: {measuring / 60:.1f} minutes of measurements{profiles}", file=sys.stderr)
    return is_whole


def add_options(parser):
    parser.add_argument("--profile", action="store_true",
                        help="where the time goes of what is behind, by perf")
    parser.add_argument("--times", type=int, default=1, metavar="N",
                        help="N times the data, the memory and the work (a power of two)")


def wanted_of(options):
    if not is_power_of_two(options.times) or options.times > TIMES_MAX:
        raise SystemExit(f"bench-papers: --times {options.times}: give a power of two, 1 … "
                         f"{TIMES_MAX}")
    wanted = [e for e in EXPERIMENTS if not options.rows or e.name in options.rows]
    if options.times == 1:
        return wanted
    fixed = [e.name for e in wanted if not can_grow(e)]
    if options.rows and fixed:
        raise SystemExit(f"bench-papers: {fixed[0]}: this row has one size: leave --times away")
    return [larger(e, options.times) for e in wanted if can_grow(e)]


def main(arguments):
    options = table_options.parse(arguments, "bench-papers", (__doc__ or "").splitlines()[0],
                                  "each run once", [e.name for e in EXPERIMENTS],
                                  ("folder", "disk", "outcore", "programs", "json-file"),
                                  add_options, REPEATS)
    wanted = wanted_of(options)
    if options.list:
        print("\n".join(e.name for e in wanted))
        return 0
    if None in (options.folder, options.disk, options.outcore):
        raise SystemExit("bench-papers: no device: start it by make bench-papers")
    if options.profile:
        try:
            processor_time.check()
        except Failed as why:
            raise SystemExit(f"bench-papers: {why}") from None
    # So that the servers, and what runs, are ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with Engines() as engines:
        return 0 if measure_all(options, wanted, engines) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
