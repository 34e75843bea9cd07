"""Machine: what the figures were measured on, in a line."""

import os
import pathlib
import platform
import subprocess


def first(path, key):
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        if line.startswith(key):
            return line.split(":", 1)[1].strip()
    return "unknown"


def said_by(*words):
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    return (done.stdout.strip().splitlines() or ["unknown"])[0]


def read_ahead_kb(folder):
    device = os.stat(folder).st_dev
    block = pathlib.Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    for queue in (block / "queue", block.resolve().parent / "queue"):
        try:
            return (queue / "read_ahead_kb").read_text(encoding="utf-8").strip()
        except OSError:
            continue
    return "unknown"


def describe(folder):
    kib = int(first("/proc/meminfo", "MemTotal").split()[0])
    source, kind = (said_by("findmnt", "-no", "SOURCE,FSTYPE", "-T", str(folder)).split() +
                    ["unknown"])[:2]
    return (f"{first('/proc/cpuinfo', 'model name')}, {os.cpu_count()} processors, "
            f"{kib / 2**20:.1f} GiB, Linux {platform.release()}, {kind} on {source} "
            f"(read_ahead_kb {read_ahead_kb(folder)}), {said_by('mpirun', '--version')}")
