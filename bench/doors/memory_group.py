"""MemoryGroup: a memory cgroup (v1 or v2) of one run, in which page cache counts. Needs root."""

import itertools
import os
import pathlib

V2_ROOT = pathlib.Path("/sys/fs/cgroup")
V1_ROOT = V2_ROOT / "memory"
_numbers = itertools.count()


class MemoryGroup:
    """Made by ``with``; whoever runs in it must have ended when the block does."""

    def __init__(self):
        self._is_v2 = (V2_ROOT / "cgroup.controllers").exists()
        root = V2_ROOT if self._is_v2 else V1_ROOT
        self._path = root / f"outcore-{os.getpid()}-{next(_numbers)}"

    def __enter__(self):
        if self._is_v2:
            try:
                (V2_ROOT / "cgroup.subtree_control").write_text("+memory", encoding="ascii")
            except OSError:
                pass  # the root may hand memory down already: what follows tells
        try:
            self._path.mkdir()
            self._file("memory.max", "memory.limit_in_bytes").read_text(encoding="ascii")
        except OSError as error:
            raise SystemExit(f"bench-doors: cannot make the memory cgroup {self._path} "
                             f"({error.strerror}): run as root") from None
        if self._is_v2:
            try:  # or a rival could escape into swap
                (self._path / "memory.swap.max").write_text("0", encoding="ascii")
            except OSError:
                pass  # no swap here
        return self

    def __exit__(self, *exception):
        if not self._is_v2:
            (self._path / "memory.force_empty").write_text("1", encoding="ascii")
        self._path.rmdir()

    def _file(self, v2_name, v1_name):
        return self._path / (v2_name if self._is_v2 else v1_name)

    def limit(self, size_bytes):
        self._file("memory.max", "memory.limit_in_bytes").write_text(str(size_bytes),
                                                                     encoding="ascii")

    def join(self):
        """The calling process, and what it starts, runs in the group from now on."""
        (self._path / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")

    def peak_bytes(self):
        return int(self._file("memory.peak", "memory.max_usage_in_bytes").read_text("ascii"))

    def kills(self):
        """Processes that the kernel ended for want of memory."""
        text = self._file("memory.events", "memory.oom_control").read_text("ascii")
        return dict(line.split() for line in text.splitlines()).get("oom_kill", "0") != "0"
