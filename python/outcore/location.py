"""Location: what an array is opened by, a path or a URL, and what is there."""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass
from typing import Any

from . import _core

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")
_OF_PATHS = ("file", "pmem", "sparse", "versioned")
_DESCRIPTORS = "/proc/self/fd/"
_SPARSE_METADATA = "outcore-sparse.json"


@dataclass(frozen=True)
class Location:
    """A store's URL with an absolute path, so that it means the same in every process."""

    url: str
    scheme: str
    path: str | None  # of a file or of a sparse store's folder

    @property
    def is_new(self) -> bool:
        """Made as it is opened, and gone with the process."""
        return self.scheme in ("scratch", "memory", "far")

    @property
    def is_descriptor(self) -> bool:
        """A file without a name, by a descriptor of this process."""
        return (self.path or "").startswith(_DESCRIPTORS)

    @property
    def shown(self) -> str:
        """The URL as messages and tables have it: without the password of a server.

        >>> locate("redis://me:secret@server:6379/grid").shown
        'redis://me:***@server:6379/grid'
        """
        return os.fsdecode(_core.without_password(self.raw))

    @property
    def raw(self) -> bytes:
        return os.fsencode(self.url)

    def exists(self) -> bool:
        if self.path is None:
            return not self.is_new and self._is_found()
        if self.scheme == "sparse":
            return os.path.exists(os.path.join(self.path, _SPARSE_METADATA))
        return os.path.exists(self.path)

    def _is_found(self) -> bool:
        """Of a store that is not a file. OSError if it cannot be asked."""
        try:
            self.size_bytes()
        except (FileNotFoundError, ValueError):  # an empty folder; what cannot be says the map
            return False
        except OSError as error:
            if error.errno != errno.EUCLEAN:
                raise
            return False  # its making, or a copy into it, did not end: it is nobody's
        return True

    def size_bytes(self) -> int:
        """OSError if it cannot be opened."""
        return _core.store_size(self.raw)

    def identity(self) -> tuple[int, int] | None:
        """What the same store has by whatever name; None if there is none yet."""
        if self.path is None:
            return None
        try:
            about = os.stat(self.path)
        except OSError:
            return None
        return about.st_dev, about.st_ino


def as_region(location: Location) -> Location:
    """Where a region of it lies: for a region persistent memory is a file, by the same URL.

    >>> as_region(locate("pmem:/data/a.npy?map_sync=off")).scheme
    'file'
    """
    if location.scheme != "pmem" or location.path is None:
        return location
    return Location(location.url, "file", location.path)


def scratch_url(folder: Any) -> str:
    """Of an unnamed file in this folder; None is the one of the option ``scratch_dir``.

    >>> scratch_url("/fast/disk")
    'scratch:/fast/disk'
    """
    return "scratch:" + ("" if folder is None else os.path.abspath(os.fsdecode(folder)))


def locate(where: Any) -> Location:
    """The location that a path, a URL, a path object or an open file names.

    >>> locate("scratch:").scheme, locate("file:/data/a.dat?direct=off").path
    ('scratch', '/data/a.dat')
    """
    if hasattr(where, "fileno"):
        if getattr(where, "writable", lambda: False)():
            where.flush()
        name = getattr(where, "name", None)
        path = os.path.abspath(os.fsdecode(name)) if isinstance(name, (str, bytes)) else \
            f"{_DESCRIPTORS}{where.fileno()}"
        return Location(path, "file", path)
    elif not isinstance(where, str):
        path = os.path.abspath(os.fsdecode(os.fspath(where)))
        return Location(path, "file", path)
    scheme = _SCHEME.match(where)
    if not where:
        raise ValueError("an array has no empty name: write a path, or scheme:path")
    if scheme is None:
        path = os.path.abspath(where)
        return Location(path, "file", path)
    name, rest = scheme.group(1).lower(), where[scheme.end():]
    if name not in _OF_PATHS:
        return Location(where, name, None)
    path, question, parameters = rest.rpartition("?") if "?" in rest else (rest, "", "")
    path = os.path.abspath(path[2:] if path.startswith("///") else path) if path else path
    if rest.startswith("//") and not rest.startswith("///"):
        return Location(where, name, None)  # a host: refused when it is opened
    url = f"{name}:{path}{question}{parameters}"
    if name == "versioned" or not path:  # where objects lie in their folder is its own affair
        return Location(url, name, None)
    return Location(url, name, path)
