"""Facts: what this machine and this installation offer."""

from __future__ import annotations

import os

from . import _core, table


def show_info() -> table.Table:
    """What the system offers to this process, and the remedy for what is missing.

    >>> import outcore
    >>> outcore.show_info().title.startswith("outcore ")
    True
    """
    rows = []
    for name, is_there, detail, remedy in _core.system_facts():
        text = detail if is_there else f"no: {detail}" + (f"; {remedy}" if remedy else "")
        rows.append((name, text))
    rows.append(("default budget", _core.default_budget()[1]))
    return table.Table(f"outcore {_core.version()}", rows)


def preload_library() -> str | None:
    """The path of the library that `outcore run` loads; None if the wheel has none."""
    path = os.path.join(os.path.dirname(__file__), "lib", "liboutcore_preload.so")
    return path if os.path.exists(path) else None
