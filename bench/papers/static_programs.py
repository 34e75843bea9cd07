"""static_programs: NPB as DLM has it: static arrays with the word dlm, compiled by occ++.

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

STATIC_PROGRAMS = tuple(
    Experiment(
        f"{name}-occ", DLM, f"NPB {name.upper()}, compiled by occ", place, name, options,
        "local memory / data, %", shares(8, 25, 50, 100),
        "10 to 20 times plain memory in the worst case, of IS, CG and FT", 10, ("8",),
        "Static arrays with the word dlm, as the paper's programs have them, compiled by occ++; "
        f"plain memory is the same source without the word. {words} Its budget alone limits it, "
        "no cgroup; a run is stopped after 20 s, with the making of its data.",
        rivals=("dram",), shows="slower", on=FAR, by=STATIC)
    for name, place, options, words in (
        ("is", "figure 9", "--class A --passes 2", "Pages of 4 to 64 KiB, by the budget."),
        ("cg", "figure 10", "--class A --passes 1",
         "What the matrix is made of is in ordinary memory, a seventh to a twelfth of it."),
        ("ft", "figure 8", "--class W --passes 2", "Class W has 20 MiB."))) + (
    Experiment(
        "servers", DLM, "NPB IS on several servers", "section II", "is", "--class A --passes 2",
        "servers", tuple(Point(str(n), ("--budget", "25%"), "", (), n) for n in (1, 2, 4)),
        "what a host has no room for goes to the next; no figure", 0, (),
        "As the paper's hosts file has it, servers are filled one after the other (far://), and "
        "a quarter of the data is local. Here all servers work on the same two processors.",
        rivals=(), on=FAR, beside=("outcore", "1"), by=STATIC),)


def lines_of(outcore, program, options, budget_percent, store, limit_seconds):
    """The line of a run of `program` (is, cg, ft), a list as of bench_command.lines_of(); with
    `store`, its variables, by occ++, else in plain memory. The options begin with --class. A run
    is limited with the making of its data and the check."""
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
                 "stopped": True, "rate": 0.0, "unit": "", "seconds": limit_seconds}]
    return [json.loads(line) for line in said.splitlines()]
