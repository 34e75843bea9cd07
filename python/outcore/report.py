"""Report: what a part of a program did with its arrays, as a page."""

from __future__ import annotations

import html
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from typing import Any

from . import _core
from .pager import Pager, unwatch, watch
from .runtime import Runtime, default_runtime


class Report:
    """Records what the arrays of this process do while it is entered; then it is a page.

    ``path`` is where the page goes when the block ends; without one it is kept here, shown by
    notebooks behind the cell, and written by ``save``. ``runtime``: whose arrays; without one,
    those of all runtimes, also of arrays with a ``budget`` of their own, and of those that are
    opened within the block. One record is made at a time of each runtime. The page is made by the
    command `outcore`, which lies in the wheel, or is found in PATH.

    >>> import outcore
    >>> a = outcore.zeros((1000, 1000))
    >>> with outcore.report() as seen:
    ...     float(a.sum())
    0.0
    >>> seen.record["format"]
    'outcore-run'
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *,
                 runtime: Runtime | None = None) -> None:
        self._path = None if path is None else os.path.abspath(os.fspath(path))
        self._runtime = runtime
        self._cores: list[_core.Runtime] = []  # that are recorded; a reference keeps them running
        self._ended: list[str] = []            # records of those that were closed meanwhile
        self._missed = 0
        self._lines: list[str] | None = None
        self._process = 0

    def __enter__(self) -> Report:
        if self._path is not None and not os.path.isdir(os.path.dirname(self._path)):
            raise FileNotFoundError(2, "there is no such folder for the report",
                                    os.path.dirname(self._path))
        self._lines, self._cores, self._ended, self._missed = None, [], [], 0
        self._process = os.getpid()
        try:
            if self._runtime is not None:
                pagers = [self._runtime._pager]
            else:
                pagers = watch(self) or [default_runtime()._pager]
            for pager in pagers:
                self._start(pager)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        self._lines = _worth_telling(self._stop())
        if self._missed:
            print(f"outcore: {self._missed} runtime(s) that began within the block could not be "
                  "recorded", file=sys.stderr)
        if self._path is None:
            if kind is None:
                self._show()
            return
        try:
            self.save(self._path)
        except OSError as error:
            if kind is None:
                raise
            print(f"outcore: {error}", file=sys.stderr)  # the block's own error goes on

    def _start(self, pager: Pager) -> None:
        core = pager.core
        if any(core is other for other in self._cores):
            return
        try:
            core.start_recording()
        except ValueError:
            if core.is_open:
                raise
            return  # another thread has just closed it
        self._cores.append(core)

    def _stop(self) -> list[str]:
        unwatch(self)
        while self._cores:
            core = self._cores.pop()
            if core.is_open and not core.is_inherited:
                self._ended.append(core.stop_recording())
        return self._ended

    # -- told by pagers --

    def pager_started(self, pager: Pager) -> None:
        if os.getpid() != self._process:  # a forked child, whose record nobody would get
            return
        try:
            self._start(pager)
        except OSError:  # by the option ``report``, or there is no memory
            self._missed += 1

    def pager_ends(self, pager: Pager) -> None:
        core = pager.core
        for i, other in enumerate(self._cores):
            if core is other:
                del self._cores[i]
                self._ended.append(core.stop_recording())
                return

    # -- what was recorded --

    @property
    def record(self) -> dict[str, Any]:
        """What was recorded (docs/reference/run-format.md); of several runtimes, that of the one
        that waited longest. RuntimeError while it is recorded."""
        return self.records[0]

    @property
    def records(self) -> list[dict[str, Any]]:
        """The same of each runtime whose arrays were touched, the longest wait first."""
        return [json.loads(line) for line in self._recorded()]

    @property
    def html(self) -> str:
        """The page."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run.html")
            self.save(path)
            with open(path, encoding="utf-8") as file:
                return file.read()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page, or, if the name ends in .json, the record."""
        target = os.path.abspath(os.fspath(path))
        text = "".join(line + "\n" for line in self._recorded())
        if target.endswith(".json"):
            _write_whole(target, text)
            return
        with tempfile.TemporaryDirectory() as folder:
            record = os.path.join(folder, "run.json")
            with open(record, "w", encoding="utf-8") as file:
                file.write(text)
            done = subprocess.run([*_command(), "report", record, "-o", target],
                                  capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise OSError(done.stderr.strip().removeprefix("outcore: "))

    def _recorded(self) -> list[str]:
        if self._lines is None:
            raise RuntimeError("the report has not been recorded yet: use it in a with statement, "
                               "and ask for it behind that")
        if not self._lines:
            raise RuntimeError("nothing was recorded in this process, a forked child: record in it "
                               "by a with statement of its own")
        return self._lines

    def _show(self) -> None:
        """Shows the page behind the cell of a notebook; a with statement is no expression, which
        the notebook would show by itself."""
        ipython = sys.modules.get("IPython")
        if ipython is not None and ipython.get_ipython() is not None:
            importlib.import_module("IPython.display").display(self)

    def _repr_html_(self) -> str:
        try:
            page = self.html
        except OSError as error:  # what was recorded is there without its page
            return f"<pre>outcore: {html.escape(str(error))}</pre>"
        # In a frame of its own, so that its styles are not the notebook's.
        return ('<iframe style="width:100%;height:900px;border:1px solid #8884" srcdoc="'
                + html.escape(page, quote=True) + '"></iframe>')

    def __repr__(self) -> str:
        return "<outcore.report, not recorded yet>" if not self._lines else \
            f"<outcore.report of {self.record['program']['seconds']:.3g} s>"


report = Report


def _worth_telling(lines: list[str]) -> list[str]:
    """Those of runtimes in which something happened, or one of another; the longest wait first."""
    def rank(line: str) -> tuple[int, int]:
        counters = json.loads(line)["counters"]
        moved = ("faults", "fills", "prefetch_fills", "call_waits", "write_backs")
        return (counters["fault_ns"] + counters["call_wait_ns"],
                sum(counters[name] for name in moved))

    ranked = sorted(((rank(line), line) for line in lines), reverse=True)
    return [line for i, (order, line) in enumerate(ranked) if i == 0 or any(order)]


def _write_whole(path: str, text: str) -> None:
    """The file is as it was, or it has all of the text; what is no file is written into."""
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return
    path = os.path.realpath(path)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=os.path.dirname(path),
                                     delete=False) as fresh:
        try:
            fresh.write(text)
            fresh.flush()
            mask = os.umask(0)
            os.umask(mask)
            mode = os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o666 & ~mask
            os.chmod(fresh.name, mode)
            os.replace(fresh.name, path)
        except BaseException:
            os.unlink(fresh.name)
            raise


def _command() -> list[str]:
    """The command `outcore`: the wheel's, which is as old as this package, or that of PATH."""
    named = os.environ.get("OUTCORE_COMMAND")
    if named:
        return [named]
    inside = os.path.join(os.path.dirname(__file__), "bin", "outcore")
    if os.access(inside, os.X_OK):
        return [inside]
    found = shutil.which("outcore")
    if found is None:
        raise FileNotFoundError(2, "the page is made by the command `outcore`, which is neither in "
                                   "this package nor in PATH; save('run.json') needs none",
                                "outcore")
    return [found]
