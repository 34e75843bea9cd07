"""Outcore: arrays far larger than memory, used as if they were in memory.

>>> import outcore
>>> a = outcore.zeros((1000, 1000), budget="16MiB")
>>> a[10] = 1
>>> float(a[10].sum())
1000.0
>>> a.close()

``open`` opens files and other stores, ``memmap`` stands in for numpy.memmap, ``empty``, ``zeros``,
``full`` and ``like`` make arrays on scratch space, and a ``Runtime`` is a memory budget of its own.
The guide is docs/guides/python.md, the reference docs/reference/python.md.
"""

from ._core import version as _version
from .array import Array
from .arrays import Arrays
from .checkpoints import (Checkpoint, CheckpointReport, Restart, checkpoint, list_checkpoints,
                          remove_checkpoints, restart)
from .creation import empty, full, like, memmap, open, zeros
from .datasets import store_dataset
from .drains import ArraysDrain, DrainProgress, drain
from .facts import preload_library, show_info
from .report import Report, report
from .runtime import Runtime, default_runtime, set_default_runtime
from .sizes import format_bytes, parse_bytes
from .stored_array import StoredArray
from .view import View

__version__ = _version()
__all__ = ["Array", "Arrays", "ArraysDrain", "Checkpoint", "CheckpointReport", "DrainProgress",
           "Report", "Restart", "Runtime", "StoredArray", "View", "checkpoint",
           "default_runtime", "drain", "empty", "format_bytes", "full", "like", "list_checkpoints",
           "memmap", "open", "parse_bytes", "preload_library", "remove_checkpoints", "report",
           "restart", "set_default_runtime", "show_info", "store_dataset", "zeros"]
