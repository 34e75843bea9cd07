"""Attributes: short texts with an array of a container, or with the container."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

from . import _core, stored_types


def check_text(what: str, text: Any) -> None:
    if not isinstance(text, str):
        raise TypeError(f"{what} is text, not {text!r}")


class Attributes(MutableMapping[str, str]):
    """Short texts with an array, or with the container."""

    def __init__(self, core: _core.Arrays, name: str) -> None:
        self._core, self._name = core, name

    def _keys(self) -> list[str]:
        return [key for key in self._core.attributes(self._name) if key != stored_types.NOTE]

    def __getitem__(self, key: str) -> str:
        if key not in self._keys():
            raise KeyError(key)
        return self._core.attribute(self._name, key)

    def __setitem__(self, key: str, text: str) -> None:
        check_text("the name of an attribute", key)
        if key == stored_types.NOTE:
            raise ValueError(f"the attribute {key!r} is Outcore's own: it keeps the dtype")
        if not text:
            raise ValueError("an attribute's text is not empty")
        self._core.set_attribute(self._name, key, str(text))

    def __delitem__(self, key: str) -> None:
        if key not in self._keys():
            raise KeyError(key)
        self._core.set_attribute(self._name, key, "")

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys())

    def __len__(self) -> int:
        return len(self._keys())

    def __repr__(self) -> str:
        return repr(dict(self))
