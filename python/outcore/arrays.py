"""Containers of named arrays: a mapping from names to arrays that are read by parts."""

from __future__ import annotations

import errno
import operator
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from typing import Any

import numpy as np

from . import stored_types
from .attributes import Attributes, check_text
from .container import Container, open_core
from .drains import ArraysDrain, drain
from .location import locate
from .runtime import Runtime
from .stored_array import StoredArray, bytes_of

_MODES = {"r": "r", "w": "w", "a": "a", "r+": "a"}


def _lengths(what: str, given: Any) -> list[int]:
    """A shape, or tiles."""
    try:
        found = [operator.index(given)]
    except TypeError:
        found = [operator.index(n) for n in given]
    if any(not 0 <= n < 1 << 63 for n in found):
        raise ValueError(f"{what} {tuple(found)}: lengths are 0 or more, below 2^63")
    return found


class Arrays(MutableMapping[str, Any]):
    """A container of named arrays: docs/guides/arrays.md.

    ``mode`` is ``r``, ``w`` (new; replaces a container) or ``a`` (more arrays). Several processes
    write together with ``comm``, an mpi4py communicator, or ``processes``, how many there are: all
    of them open, allocate, store their boxes and close. What is written is there for others when
    the last has closed. A ``with`` block that an exception leaves calls ``abort``: what was being
    written is absent. ``runtime`` has the budget of views, by default the default one.

    >>> import numpy, tempfile, outcore
    >>> path = tempfile.mkdtemp() + "/run.oca"
    >>> with outcore.Arrays(path, "w") as out:
    ...     out["t"] = numpy.arange(6.0).reshape(2, 3)
    ...     out["title"] = "a flame"
    ...     u = out.alloc("u", (1000, 1000), "f4")
    ...     u[10:20] = 1
    >>> with outcore.Arrays(path) as run:
    ...     sorted(run), run["title"], run["t"][1, :].tolist(), float(run["u"][15, 3])
    (['t', 'title', 'u'], 'a flame', [3.0, 4.0, 5.0], 1.0)
    """

    def __init__(self, url: Any, mode: str = "r", *, comm: Any = None,
                 processes: int | None = None, runtime: Runtime | None = None) -> None:
        if mode not in _MODES:
            raise ValueError(f"mode {mode!r}: write r, w or a")
        if comm is not None and processes is not None:
            raise TypeError("give a communicator, or the number of processes")
        rank, size = 0, 1 if processes is None else operator.index(processes)
        if size < 1:
            raise ValueError(f"processes = {size}: write how many there are, 1 or more")
        any_failed: Callable[[bool], bool] | None = None
        if comm is not None:
            rank, size = comm.Get_rank(), comm.Get_size()
            any_failed = lambda failed: any(comm.allgather(failed))  # noqa: E731
        location = locate(url)
        self.url, self._shown = location.url, location.shown
        self._runtime = runtime
        self._core = open_core(location, _MODES[mode], rank, size, any_failed,
                               None if runtime is None else runtime._pager)
        self._container = Container(self._core, location, _MODES[mode])
        self.attrs = Attributes(self._core, "")

    def __getitem__(self, name: str) -> Any:
        """A StoredArray; one value as a NumPy scalar, text as str."""
        check_text("the name of an array", name)
        if not self._core.has(name):
            raise self._why_absent(name)
        kind, dims, *_ = self._core.info(name)
        if kind in ("text", "object"):
            text = bytearray(dims[0])
            if text:
                self._core.load_box(name, kind, text, [0], dims)
            return text.decode(errors="surrogateescape") if kind == "text" else bytes(text)
        array = StoredArray(self._container, name)
        return array[()] if not dims else array

    def _why_absent(self, name: str) -> Exception:
        """KeyError; where it may have been drained to what cannot be opened, that."""
        try:
            self._core.info(name)
        except FileNotFoundError:
            return KeyError(name)
        except OSError as error:
            return error
        return KeyError(name)

    def __setitem__(self, name: str, value: Any) -> None:
        self.store(name, value)

    def store(self, name: str, value: Any, *, order: str | None = None,
              tiles: Sequence[int] = (), compress: str | None = None) -> None:
        """A whole array, number or text, in place of what has the name. ``compress`` is ``lz4``,
        ``zstd`` or ``zstd:LEVEL``: of each tile by itself; tiles of about 1 MiB if none are named.

        >>> import numpy, outcore, tempfile
        >>> with outcore.Arrays(tempfile.mkdtemp() + "/run.oca", "w") as out:
        ...     out.store("u", numpy.arange(1e6).reshape(1000, 1000), compress="zstd")
        ...     out["u"].compress, out["u"].tiles, float(out["u"][999, 7])
        ('zstd:3', (250, 500), 999007.0)
        """
        check_text("the name of an array", name)
        if isinstance(value, str):
            text = value.encode(errors="surrogateescape")
            self._core.store_whole(name, "text", [len(text)], text, False, [],
                                   compress or "")
            return
        values = np.asanyarray(value)
        is_column = order == "F" or (order is None and values.ndim > 1 and
                                     values.flags.f_contiguous and not values.flags.c_contiguous)
        kind, dtype, noted = stored_types.kept(values.dtype)
        values = np.asarray(values, dtype, order="F" if is_column else "C")
        self._core.store_whole(name, kind, values.shape, bytes_of(values), is_column,
                               _lengths("tiles", tiles), compress or "")
        if noted or self._core.attribute(name, stored_types.NOTE):
            self._core.set_attribute(name, stored_types.NOTE, noted)

    def alloc(self, name: str, shape: int | Sequence[int], dtype: Any = "f8", *, order: str = "C",
              tiles: Sequence[int] = (), compress: str | None = None,
              may_replace: bool = False) -> StoredArray:
        """Room for an array, to be stored by boxes; what is not stored reads zero. With
        ``may_replace`` it takes the place of one of its name when it is finished; ``compress`` as
        for ``store``."""
        check_text("the name of an array", name)
        kind, _, noted = stored_types.kept(np.dtype(dtype))
        self._core.alloc(name, kind, _lengths("shape", shape), order == "F",
                         _lengths("tiles", tiles), compress or "", may_replace)
        if noted:
            self._core.set_attribute(name, stored_types.NOTE, noted)
        return StoredArray(self._container, name)

    def __delitem__(self, name: str) -> None:
        check_text("the name of an array", name)
        if not self._core.has(name):
            raise self._why_absent(name)
        self._core.remove(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._core.list())

    def __len__(self) -> int:
        return len(self._core.list())

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        if self._core.has(name):
            return True
        why = self._why_absent(name)
        if isinstance(why, KeyError):
            return False
        raise why

    def rename(self, name: str, to: str) -> None:
        check_text("the name of an array", name)
        check_text("the new name of an array", to)
        self._core.rename(name, to)

    def flush(self) -> None:
        """What is stored is durable; of one process alone, and there for others."""
        self._core.flush()

    def verify(self, name: str | None = None) -> list[str]:
        """Reads all finished arrays, or the one of this name, and compares them with their
        checksums. Returns the names of those that have none; OSError (EIO) names what is damaged.
        """
        if name is not None:
            check_text("the name of an array", name)
        _, _, damaged, unchecked = self._core.verify("" if name is None else name)
        if damaged:
            array, where = damaged[0]
            more = f" and {len(damaged) - 1} more" if len(damaged) > 1 else ""
            what = repr(array) if array else "the container"
            raise OSError(errno.EIO, f"{what} is damaged: {where}{more}: go back to a copy of it",
                          self._shown)
        return unchecked

    def drain(self, target: Any, names: Iterable[str] | str | None = None, *,
              rate: int | float | str | None = None, remove: bool = False) -> ArraysDrain:
        """Copies what is finished to another container, in the background: ``outcore.drain``."""
        if not self._core.is_open:
            raise ValueError("the container is closed")
        return drain(self.url, target, names, rate=rate, remove=remove, runtime=self._runtime)

    def close(self) -> None:
        self._core.close()

    def abort(self) -> None:
        """In place of close: what the session has written is absent, as if this process had died;
        others of the session hear of it when they close. With ``comm`` it waits for them."""
        self._core.abort()

    def __enter__(self) -> Arrays:
        return self

    def __exit__(self, kind: Any = None, *raised: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def __reduce__(self) -> Any:
        self._container.check_pickle()
        return Arrays, (self.url,)

    def __dask_tokenize__(self) -> Any:
        return ("outcore.Arrays", *self._container.stamp())

    def _attributes_of(self, name: str) -> Attributes:
        """Of numbers and texts, too, which come back as such."""
        return Attributes(self._core, name)

    def __repr__(self) -> str:
        if not self._core.is_open:
            return f"<outcore.Arrays '{self._shown}', closed>"
        return f"<outcore.Arrays '{self._shown}' with {', '.join(self) or 'nothing'}>"
