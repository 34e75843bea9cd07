"""Progress: how a long call tells how far it is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


class Progress:
    """Takes ``progress=`` of a call: None, True, a callable(done, total), or an object of tqdm's.

    >>> with Progress(lambda done, total: print(done, total), 10) as report:
    ...     report(4)
    ...     report(6)
    4 10
    10 10
    """

    def __init__(self, progress: Any, total: int, what: str = "") -> None:
        self._total, self._done = total, 0
        self._end: Callable[[], None] = lambda: None
        if progress is None or progress is False:
            self._tell: Callable[[int], None] = lambda n: None
        elif progress is True:
            self._use_default(what)
        elif hasattr(progress, "update"):
            self._tell = progress.update
        elif callable(progress):
            self._tell = lambda n: progress(self._done, self._total)
        else:
            raise TypeError(f"progress={progress!r}: write True, a callable(done, total), or an "
                            "object with update(n)")

    def _use_default(self, what: str) -> None:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            self._tell = lambda n: self._print(what)
            self._end = lambda: print(file=sys.stderr)
            return
        shown = tqdm(total=self._total, desc=what, unit="B", unit_scale=True, unit_divisor=1024)
        self._tell, self._end = shown.update, shown.close

    def _print(self, what: str) -> None:
        share = self._done / self._total if self._total else 1
        print(f"\r{what} {share:4.0%}", end="", file=sys.stderr, flush=True)

    def __call__(self, count: int) -> None:
        self._done += count
        self._tell(count)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exception: object) -> None:
        self._end()
