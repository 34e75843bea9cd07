"""Runs: programs of ours on far memory, each to its end, and the lines that they print."""

import sys
from dataclasses import dataclass, field

import bench_command
from engines import Engines

MIB = 2**20
NONE = {"data_bytes": 0, "budget_bytes": 0, "threads": 1, "processes": 1, "page_bytes": 4096,
        "p50_us": 0, "p99_us": 0, "peak_bytes": 0, "fills": 0, "read_bytes": 0, "written_bytes": 0,
        "limited": False, "stopped": False, "checked": True, "store": "", "device": "network"}


@dataclass
class Context:
    """What the rows are measured with."""

    programs: str  # the folder of outcore, far_floor, far_byte_writes
    folder: str  # on the disk: of swap, and of the files of other memories
    engines: Engines
    is_quick: bool
    repeats: int
    see: object  # gets the line of each run
    floors: dict = field(default_factory=dict)

    def scale(self, full, quick):
        return quick if self.is_quick else full

    def run(self, words, while_it_runs=None, **variables):
        """Its output. ``while_it_runs(process)`` may disturb it."""
        return bench_command.run(words, while_it_runs, **self._variables(), **variables)

    def bench(self, row, workload, *options, memory="outcore", store=None, repeats=None,
              while_it_runs=None):
        """The lines of the runs of `outcore bench`."""
        words = ["--memory", memory, "--dir", self.folder, "--repeat", repeats or self.repeats,
                 *options, *(("--store", store) if store is not None else ())]
        lines = bench_command.lines_of(f"{self.programs}/outcore", workload, *words,
                                       while_it_runs=while_it_runs, **self._variables())
        for line in lines:
            line["row"] = row
            self.see(line)
        return lines

    def _variables(self):
        return {"REDISCLI_AUTH": self.engines.password}

    def tell(self, row, workload, memory, seconds, rate, unit, **more):
        """A line of a program that is no benchmark of the command's."""
        self.see({**NONE, "row": row, "workload": workload, "memory": memory,
                  "seconds": max(seconds, 1e-9), "rate": rate, "unit": unit, **more})


def describe(line):
    words = [f"  {line['row']}: {line['workload']}, {line['memory']}: {line['seconds']:.3f} s"]
    if line.get("stopped"):
        words.append(line.get("stopped_because", "stopped"))
    else:
        scale, sign = (1e6, "M ") if line["rate"] >= 1e7 else (1e3, "k ")
        if line["unit"] == "MiB/s" or line["rate"] < 1e4:
            scale, sign = 1, ""
        words.append(f"{line['rate'] / scale:.{1 if sign else 0}f} {sign}{line['unit']}")
    if line["page_bytes"] not in (0, 4096):  # 0: it was stopped
        words.append(f"pages of {line['page_bytes'] >> 10} KiB")
    if line["budget_bytes"] and line["memory"] == "outcore":
        words.append(f"{line['budget_bytes'] / line['data_bytes']:.0%} local")
    if line.get("p50_us"):
        words.append(f"p50 {line['p50_us']:.1f} us")
    return ", ".join(words)


def say(text):
    print(text, file=sys.stderr, flush=True)
