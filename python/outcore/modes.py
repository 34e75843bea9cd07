"""Modes: what may be done to an array, and what happens to its store when it is opened."""

from __future__ import annotations

from dataclasses import dataclass

_NAMES = {"readonly": "r", "rb": "r", "readwrite": "r+", "write": "w+", "copyonwrite": "c",
          "w-": "x"}


@dataclass(frozen=True)
class Mode:
    """One mode by its short name. ``w`` and ``w+`` are the same; ``w-`` is ``x``."""

    name: str
    access: str  # of the region
    may_create: bool = False
    must_create: bool = False
    truncates: bool = False

    @property
    def for_reopening(self) -> str:
        """The mode that opens the same array again and destroys nothing."""
        return self.name if self.name in ("r", "c") else "r+"


MODES = {
    "r": Mode("r", "read-only"),
    "r+": Mode("r+", "read-write"),
    "w": Mode("w", "read-write", may_create=True, truncates=True),
    "w+": Mode("w+", "read-write", may_create=True, truncates=True),
    "x": Mode("x", "read-write", may_create=True, must_create=True),
    "a": Mode("a", "read-write", may_create=True),
    "c": Mode("c", "private"),
}


def parse_mode(mode: str) -> Mode:
    """The mode of this name, NumPy's long names included.

    >>> parse_mode("copyonwrite").name, parse_mode("w-").name, parse_mode("w+").for_reopening
    ('c', 'x', 'r+')
    """
    found = MODES.get(_NAMES.get(mode, mode)) if isinstance(mode, str) else None
    if found is None:
        raise ValueError(f"mode {mode!r} is unknown: write one of {', '.join([*MODES, 'w-'])}, or "
                         f"{', '.join(n for n in _NAMES if len(n) > 2)}")
    return found
