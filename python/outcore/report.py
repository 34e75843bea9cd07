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
import weakref
from typing import Any, NamedTuple

from . import _core
from .fork_lock import ForkLock
from .pager import Pager, unwatch, watch
from .runtime import Runtime, default_runtime


class _Recorded(NamedTuple):
    core: _core.Runtime  # a reference, which keeps it running until its record is made
    gone: weakref.finalize[Any, Any]  # of its pager


class Report:
    """Records what the arrays of this process do while it is entered; then it is a page.

    ``path`` is where the page goes when the block ends; without one it is kept here, shown by
    notebooks behind the cell, and written by ``save``. ``runtime``: whose arrays; without one,
    those of all runtimes, also of arrays with a ``budget`` of their own, and of those that are
    opened within the block. One record is made at a time of each runtime: of all, those that are
    recorded already are left out, which is told on stderr. The page is made by the command
    `outcore`, which lies in the wheel, or is found in PATH.

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
        # Guards what follows, as other threads start, close and drop runtimes; held while one is
        # started or stopped, so that whoever finds none left has the records of all. The collector
        # drops and closes runtimes, too, in the midst of what is done here.
        self._lock = ForkLock()
        self._is_over = True
        self._recorded_of: dict[int, _Recorded] = {}  # by the id of its core
        self._dropped: list[_core.Runtime] = []  # whose pagers are gone
        self._ended: list[str] = []  # records of those that were closed or dropped meanwhile
        self._missed: list[OSError] = []
        self._lines: list[str] | None = None
        self._process = 0

    def __enter__(self) -> Report:
        if self._path is not None and not os.path.isdir(os.path.dirname(self._path)):
            raise FileNotFoundError(2, "there is no such folder for the report",
                                    os.path.dirname(self._path))
        with self._lock:
            self._lines, self._ended, self._missed, self._dropped = None, [], [], []
            self._recorded_of = {}
            self._process = os.getpid()
            self._is_over = False
        try:
            if self._runtime is not None:
                self._start(self._runtime._pager)
            else:
                for pager in watch(self) or [default_runtime()._pager]:
                    self.pager_started(pager)
                if self._missed and not self._recorded_of and not self._ended:
                    raise self._missed[0]
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        if os.getpid() != self._process:  # a forked child: the record is its parent's
            self._lines = []
            unwatch(self)
            return
        failed = self._stop()
        self._lines = _worth_telling(self._ended)
        if self._missed:
            print(f"outcore: {len(self._missed)} runtime(s) could not be recorded: "
                  f"{self._missed[0]}", file=sys.stderr)
        try:
            if self._path is not None and (self._lines or failed is None):
                self.save(self._path)
            if failed is not None:
                raise failed
        except Exception as error:
            if kind is None:
                raise
            print(f"outcore: {error}", file=sys.stderr)  # the block's own error goes on
        if self._path is None and kind is None:
            self._show()

    def _start(self, pager: Pager) -> None:
        with self._lock:
            self._stop_dropped()
            core = pager.core
            if self._is_over or id(core) in self._recorded_of:  # told by another thread first
                return
            try:
                core.start_recording()
            except ValueError:
                if core.is_open:
                    raise
                return  # another thread has just closed it
            gone = weakref.finalize(pager, self._pager_dropped, core)
            gone.atexit = False
            self._recorded_of[id(core)] = _Recorded(core, gone)

    def _stop_one(self, core: _core.Runtime) -> None:
        """With the lock held."""
        recorded = self._recorded_of.pop(id(core), None)
        if recorded is None:
            return
        recorded.gone.detach()
        try:
            self._ended.append(core.stop_recording())
        except ValueError:
            if core.is_open:
                raise

    def _stop_early(self, core: _core.Runtime) -> None:
        """The same within the block: what it raises is told at its end, as whoever closes or drops
        the runtime is not concerned by it."""
        try:
            self._stop_one(core)
        except OSError as error:
            self._missed.append(error)

    def _stop_dropped(self) -> None:
        """With the lock held. Those that nothing uses end by this; what views of arrays still read
        is recorded further."""
        dropped, self._dropped = self._dropped, []
        for core in dropped:
            if core.is_used and id(core) in self._recorded_of:
                self._dropped.append(core)
            else:
                self._stop_early(core)

    def _stop(self) -> Exception | None:
        """Stops them all. What one of them raised, the first."""
        first: Exception | None = None
        with self._lock:
            self._is_over = True  # of those that start from here on none is recorded
        while True:  # others may go on between two of them
            with self._lock:
                if not self._recorded_of:
                    break
                core = next(reversed(self._recorded_of.values())).core
                try:
                    self._stop_one(core)
                except Exception as error:
                    first = first or error
        unwatch(self)  # not before: those that are closed between two of them are told
        with self._lock:
            self._dropped = []
        return first

    def _pager_dropped(self, core: _core.Runtime) -> None:
        """Called by the collector."""
        if os.getpid() != self._process:
            return
        with self._lock:
            self._dropped.append(core)
            self._stop_dropped()

    # -- told by pagers --

    def pager_started(self, pager: Pager) -> None:
        if os.getpid() != self._process:  # a forked child, whose record nobody would get
            return
        try:
            self._start(pager)
        except OSError as error:  # by the option ``report``, or there is no memory
            self._missed.append(error)

    def pager_ends(self, pager: Pager) -> None:
        if os.getpid() != self._process:
            return
        with self._lock:
            self._stop_early(pager.core)

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
