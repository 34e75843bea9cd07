"""Programs: those of bench/rivals that could be built, and how one is run."""

import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
from dataclasses import dataclass

SECONDS_MAX = 900  # of one run
COUNT = 500  # doubles that each process of an example stores
NONE = {"workload": "arrays", "budget_bytes": 0, "threads": 1, "page_bytes": 4096, "p50_us": 0,
        "p99_us": 0, "peak_bytes": 0, "fills": 0, "read_bytes": 0, "written_bytes": 0,
        "limited": False, "stopped": False, "store": "", "device": "", "unit": "MiB/s"}


class Failed(Exception):
    """One line for people."""


@dataclass(frozen=True)
class Program:
    """One that is measured."""

    name: str
    binary: str
    kind: str  # outcore, floor, adios, other
    variant: str = ""


PROGRAMS = [
    Program("mmap", "mmap_floor", "floor"),
    Program("hdf5", "hdf5", "other"),
    Program("adios POSIX", "adios", "adios", "POSIX"),
    Program("adios MPI_AGGREGATE", "adios", "adios", "MPI_AGGREGATE"),
    Program("outcore", "outcore", "outcore"),
    Program("adios2", "adios2", "adios"),
    Program("pnetcdf", "pnetcdf", "other"),
    Program("netcdf", "netcdf", "other"),
    Program("write(2)", "write_floor", "floor"),
]
EXAMPLES = ("outcore", "hdf5", "netcdf", "pnetcdf", "adios", "adios2")


def environment():
    """As it is outside, without what would change Outcore's defaults."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("OUTCORE_")}
    return {**kept, "OUTCORE_CONFIG": ""}


def launch(processes, words):
    """What a program prints that mpirun starts. All processors are each process' and its threads':
    none is bound to one, and who waits yields."""
    as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    started = ["mpirun", *as_root, "--oversubscribe", "--bind-to", "none", "--mca",
               "mpi_yield_when_idle", "1", "-n", str(processes), *map(str, words)]
    with subprocess.Popen(started, env=environment(), stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            output, errors = process.communicate(timeout=SECONDS_MAX)
        except BaseException as why:
            process.send_signal(signal.SIGTERM)  # mpirun ends its processes
            try:
                process.communicate(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
            if isinstance(why, subprocess.TimeoutExpired):
                raise Failed(f"it took more than {SECONDS_MAX} s") from None
            raise
    if process.returncode != 0:
        noise = ("-----", "MPI_ABORT", "with errorcode", "NOTE:", "You may", "exactly when",
                 "mpirun ", "Primary job", "a non-zero", "Process name", "Exit code")
        lines = [line.strip() for line in errors.splitlines()]
        told = [line for line in lines if line and not line.startswith(noise)]
        raise Failed(told[0] if told else f"status {process.returncode}")
    return output


def measure(program, folder, data, processes, size, phases, words=()):
    """The lines of one run, one a phase, of which the first two are write and same. Failed: also if
    it read what was not written."""
    more = ["--variant", program.variant] if program.variant else []
    output = launch(processes, [f"{folder}/{program.binary}", "--folder", data, "--size", size,
                                "--phases", ",".join(phases), *more, *words])
    lines = []
    for text in output.splitlines():
        said = json.loads(text)
        lines.append({**NONE, **said, "memory": program.name, "row": said["phase"],
                      "rate": said["data_bytes"] / 2**20 / said["seconds"]})
    told = [line["phase"] for line in lines]
    if told[:2] != ["write", "same"] or not lines[1]["checked"]:
        raise Failed("it did not say what it took to write, and to read that again")
    lines[0]["checked"] = True  # what was read was right, so what was written was
    return lines


def holds(folder, processes):
    """Whether the files below hold the doubles of each process of the example, in any order of
    bytes and processes."""
    everything = b"".join(p.read_bytes() for p in sorted(pathlib.Path(folder).rglob("*"))
                          if p.is_file())
    return all(any(struct.pack(f"{order}d", 1.0 + rank) * COUNT in everything for order in "<>")
               for rank in range(processes))


def run_example(name, folder, data, processes):
    """Runs the paper's example of a library, and looks whether it has stored what it should."""
    own = pathlib.Path(data) / f"example_{name}"
    own.mkdir()
    try:
        launch(processes, [f"{folder}/example_{name}", own / "stored"])
        if not holds(own, processes):
            raise Failed("its file does not hold what the processes stored")
    finally:
        shutil.rmtree(own, ignore_errors=True)
