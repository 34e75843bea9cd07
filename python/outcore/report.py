"""Report: what a part of a program did with its arrays, as a page."""

from __future__ import annotations

import html
import json
import os
import shutil
import subprocess
import sys
import tempfile
from typing import Any

from .runtime import Runtime, default_runtime


class Report:
    """Records what a runtime does while it is entered; then it is a page.

    ``path`` is where the page goes when the block ends; without one it is kept here, shown by
    notebooks, and written by ``save``. ``runtime``: whose arrays; without one, the default
    runtime's. One record is made at a time. The page is made by the command `outcore`, which lies
    in the wheel, or is found in PATH.

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
        self._runtime = default_runtime() if runtime is None else runtime
        self._line: str | None = None

    def __enter__(self) -> Report:
        if self._path is not None and not os.path.isdir(os.path.dirname(self._path)):
            raise FileNotFoundError(2, "there is no such folder for the report",
                                    os.path.dirname(self._path))
        self._line = None
        self._runtime._pager.core.start_recording()
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        self._line = self._runtime._pager.core.stop_recording()
        if self._path is not None:
            try:
                self.save(self._path)
            except OSError as error:
                if kind is None:
                    raise
                print(f"outcore: {error}", file=sys.stderr)  # the block's own error goes on

    @property
    def record(self) -> dict[str, Any]:
        """What was recorded (docs/reference/run-format.md). RuntimeError while it is recorded."""
        read: dict[str, Any] = json.loads(self._recorded())
        return read

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
        line = self._recorded() + "\n"
        if target.endswith(".json"):
            _write_whole(target, line)
            return
        with tempfile.TemporaryDirectory() as folder:
            record = os.path.join(folder, "run.json")
            with open(record, "w", encoding="utf-8") as file:
                file.write(line)
            done = subprocess.run([*_command(), "report", record, "-o", target],
                                  capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise OSError(done.stderr.strip().removeprefix("outcore: "))

    def _recorded(self) -> str:
        if self._line is None:
            raise RuntimeError("the report has not been recorded yet: use it in a with statement, "
                               "and ask for it behind that")
        return self._line

    def _repr_html_(self) -> str:
        # In a frame of its own, so that its styles are not the notebook's.
        return ('<iframe style="width:100%;height:900px;border:1px solid #8884" srcdoc="'
                + html.escape(self.html, quote=True) + '"></iframe>')

    def __repr__(self) -> str:
        return "<outcore.report, not recorded yet>" if self._line is None else \
            f"<outcore.report of {self.record['program']['seconds']:.3g} s>"


report = Report


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
