"""Process: one run of a command within a memory cgroup, and what it took."""

import json
import os
import pathlib
import resource
import signal
import subprocess
import time
from dataclasses import dataclass

from memory_group import MemoryGroup

FORGET = pathlib.Path(__file__).resolve().parents[2] / "tools" / "forget.sh"


@dataclass
class Taken:
    """What a run took. ``seconds`` is that of the whole process."""

    seconds: float
    status: int  # as waitpid gives it
    is_stopped: bool  # by the time limit
    is_killed: bool  # a process of it, by the kernel for want of memory
    peak_bytes: int
    rss_bytes: int  # the largest of a process of it, mapped pages included
    major_faults: int
    switches: int  # of context, by its threads and its children's
    device_read_bytes: int
    device_written_bytes: int
    output: str
    errors: str


class Device:
    """The block device under a folder, and its counters."""

    def __init__(self, folder):
        number = os.stat(folder).st_dev
        self._path = pathlib.Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
        self.name = self._path.resolve().name

    def read_ahead_kb(self):
        return int((self._path / "queue" / "read_ahead_kb").read_text("ascii"))

    def transferred_bytes(self):
        """Read and written since the system started."""
        fields = (self._path / "stat").read_text("ascii").split()
        return int(fields[2]) * 512, int(fields[6]) * 512


def forget(files):
    """Drops these files from the page cache."""
    subprocess.run([FORGET, *files], check=True)


def run_process(command, environment, device, limit_bytes=None, seconds_max=600):
    """Runs it to its end or to ``seconds_max``. ``limit_bytes``: of its memory, page cache too."""
    with MemoryGroup() as group:
        if limit_bytes is not None:
            group.limit(limit_bytes)
        before, read, written = _children(), *device.transferred_bytes()
        began, is_stopped = time.monotonic(), False
        with subprocess.Popen(command, env={**os.environ, **environment}, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, preexec_fn=group.join,
                              start_new_session=True) as process:
            try:
                output, errors = process.communicate(timeout=seconds_max)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                output, errors = process.communicate()
                is_stopped = True
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        seconds = time.monotonic() - began
        used, after = _children(), device.transferred_bytes()
        return Taken(seconds, process.returncode, is_stopped, group.kills(), group.peak_bytes(),
                     _rss_bytes(output), used[0] - before[0], used[1] - before[1],
                     after[0] - read, after[1] - written, output, errors)


def _children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_majflt, usage.ru_nvcsw + usage.ru_nivcsw


def last_json(output):
    """The last line of what a program of ours printed, as an object; {} if it is none."""
    lines = output.strip().splitlines()
    if not lines or not lines[-1].startswith("{"):
        return {}
    return json.loads(lines[-1])


def _rss_bytes(output):
    return last_json(output).get("rss_bytes", 0)


def warm_up(command, environment):
    """Runs it outside of any group, so that its libraries are in the page cache for everybody."""
    subprocess.run(command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                   capture_output=True, check=False)


def time_start(command):
    """Seconds from the start to the end of a command that says nothing."""
    began = time.perf_counter()
    process = os.posix_spawnp(command[0], command, os.environ)
    _, status = os.waitpid(process, 0)
    seconds = time.perf_counter() - began
    if status != 0:
        raise SystemExit(f"bench-doors: {' '.join(command)} failed with status {status}: run it")
    return seconds
