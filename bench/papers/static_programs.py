"""static_programs: what DLM measured as it has it: static arrays with the word dlm, by occ++.

Its programs are those of bench/static, also built by the plain compiler, and run as `outcore bench`
runs its workloads.
"""

import json
import pathlib

import bench_command
from bench_command import TookTooLong
from experiment import DLM, FAR, STATIC, Experiment, Point, shares

BUILD = pathlib.Path(__file__).resolve().parents[1] / "static" / "build.sh"
PAGE_BYTES = 4096

_NPB_CLAIM = "10 to 20 times plain memory in the worst case, of IS, CG and FT"
_RATE = (("", "rate"),)

STATIC_PROGRAMS = tuple(
    Experiment(
        f"{name}-occ", DLM, f"{title}, compiled by occ", place, name, options,
        "local memory / data, %", shares(least, 25, 50, 75, 100, paper={str(least): told}), claim,
        asked, (str(least),),
        "Static arrays with the word dlm, as the paper's programs have them, compiled by occ++; "
        f"plain memory is the same source without the word. {words} Its budget alone limits it, "
        "no cgroup; a run is stopped after 20 s, with the making of its data and the check.",
        rivals=("dram",), shows="slower", on=FAR, keys=keys, by=STATIC)
    for name, title, place, options, least, asked, told, keys, claim, words in (
        ("is", "NPB IS", "figure 9", "--class A --passes 2", 8, 10, "10 to 20", _RATE, _NPB_CLAIM,
         "Pages of 4 to 64 KiB, by the budget."),
        ("cg", "NPB CG", "figure 10", "--class A --passes 1", 8, 10, "10 to 20", _RATE, _NPB_CLAIM,
         "What the matrix is made of is in ordinary memory, a seventh to a twelfth of it."),
        ("ft", "NPB FT", "figure 8", "--class W --passes 2", 8, 10, "10 to 20", _RATE, _NPB_CLAIM,
         "Class W has 20 MiB."),
        ("stream", "STREAM", "figures 6 and 7", "--class A --passes 2", 8, 10, "below 10 by 64k",
         (("COPY", "copy_mean_mib_s"), ("TRIAD", "triad_mean_mib_s")),
         "with 8 % local less than 10 times plain memory by pages of 64 KiB and more, 50 to 70 "
         "times by 4 to 16 KiB",
         "Theirs has 2.4 GB, in arrays that it allocates, as its compiler had no room for static "
         "ones; ours has 96 MiB, and pages of 4 to 64 KiB, by the budget."),
        ("himeno", "Himeno", "figure 11", "--class A --passes 2", 10, 5, "5 by 1M", _RATE,
         "with 10 % local 5 times plain memory by pages of 1 MiB, 35 times by 4 KiB",
         "Theirs has 257 x 257 x 513 cells, 1.9 GB; ours 96 x 96 x 195, 96 MiB, and pages of 8 to "
         "64 KiB, by the budget."))) + tuple(
    Experiment(
        name, DLM, f"{title} on several servers", "section II", program, options,
        "servers", tuple(Point(str(n), ("--budget", "25%"), "", (), n) for n in (1, 2, 4)),
        "what a host has no room for goes to the next; no figure", 0, (), words,
        rivals=(), on=FAR, beside=("outcore", "1"), by=STATIC)
    for name, title, program, options, words in (
        ("servers", "NPB IS", "is", "--class A --passes 2",
         "As the paper's hosts file has it, servers are filled one after the other (far://), and "
         "a quarter of the data is local. Here all servers work on the same two processors."),
        ("servers-cg", "NPB CG", "cg", "--class A --passes 1",
         "The matrix lies on all of the servers, and is read in order in each step. Each server "
         "more is another process on the same two processors."),
        ("servers-ft", "NPB FT", "ft", "--class W --passes 2",
         "Lines of the third direction touch planes on all of the servers. Each server more is "
         "another process on the same two processors."),
        ("servers-stream", "STREAM", "stream", "--class A --passes 2",
         "Each server more is another process on the same two processors, and adds no bandwidth. "
         "Theirs have a network each."),
        ("servers-himeno", "Himeno", "himeno", "--class A --passes 2",
         "Its arrays lie on all of the servers, and are read side by side; the same two processors "
         "do all of the work. Theirs have processors of their own, and a network.")))


def lines_of(outcore, program, options, budget_percent, store, limit_seconds):
    """The line of a run of `program`, a list as of bench_command.lines_of(); with `store`, its
    variables, by occ++, else in plain memory. The options begin with --class. A run is limited with
    the making of its data and the check."""
    word, nas_class, *words = options
    if word != "--class":
        raise ValueError(f"{program}: options of a static program begin with --class")
    folder = pathlib.Path(outcore).resolve().parents[1] / "static"
    bench_command.run([BUILD, nas_class, folder, program],
                      OCC=str(pathlib.Path(outcore).absolute().with_name("occ++")))
    path = folder / f"{program}-{nas_class}"
    plain = f"{path}-plain"
    data_bytes = int(bench_command.run([plain, "--size"]))
    budget = data_bytes * budget_percent // 100 // PAGE_BYTES * PAGE_BYTES
    variables = {"OUTCORE_BUDGET": str(budget), **store} if store else {}
    try:
        said = bench_command.run([path if store else plain, *words],
                                 seconds_max=limit_seconds, **variables)
    except TookTooLong:
        return [{"workload": program, "data_bytes": data_bytes, "budget_bytes": budget,
                 "stopped": True, "rate": 0.0, "unit": "", "seconds": limit_seconds,
                 "started_ns": 0}]
    return [json.loads(line) for line in said.splitlines()]
