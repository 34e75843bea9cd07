"""Sizes: byte counts as people write them, in powers of 1024 throughout."""

from __future__ import annotations

import math
import numbers
import re

_SIZE = re.compile(r"\s*(\d+(?:\.\d*)?)\s*([kmgtp]?)(i?b)?\s*", re.IGNORECASE)
_TIME = re.compile(r"\s*(\d+(?:\.\d*)?)\s*(ms|s|min|h)\s*")
_MILLISECONDS = {"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000}
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def parse_bytes(size: int | float | str) -> int:
    """The number of bytes that ``size`` names.

    >>> parse_bytes("256MiB"), parse_bytes("4GB"), parse_bytes("1.5k"), parse_bytes(4096)
    (268435456, 4294967296, 1536, 4096)
    """
    if isinstance(size, str):
        match = _SIZE.fullmatch(size)
        if match is None:
            raise ValueError(f"{size!r} is not a size: "
                             "write a number with k, M, G or T, as in '64k'")
        number, unit = match.group(1), match.group(2).lower()
        if not unit and "." not in number:
            return _bounded(int(number.lstrip("0")[:20] or "0"), size)
        return _bounded(float(number) * 1024 ** ("kmgtp".index(unit) + 1 if unit else 0), size)
    if not isinstance(size, numbers.Real):
        raise TypeError(f"{size!r} is not a size: write a whole number of bytes, or text as '64k'")
    if isinstance(size, bool) or not 0 <= size < math.inf or size != int(size):
        raise ValueError(f"{size!r} is not a size: write a whole number of bytes, or text as '64k'")
    return _bounded(size, size)


def _bounded(count: int | float, size: int | float | str) -> int:
    if count >= 1 << 63:
        raise ValueError(f"{size!r} is more bytes than there are addresses: name fewer")
    return int(count)


def parse_time(time: int | str) -> int:
    """The milliseconds that ``time`` names.

    >>> parse_time("30s"), parse_time("1.5 min"), parse_time(250)
    (30000, 90000, 250)
    """
    if isinstance(time, str):
        match = _TIME.fullmatch(time)
        if match is not None:
            return int(float(match.group(1)) * _MILLISECONDS[match.group(2)])
    elif isinstance(time, numbers.Integral) and not isinstance(time, bool) and time >= 0:
        return int(time)
    raise ValueError(f"{time!r} is not a time: write a number with ms, s, min or h, as '30s', or "
                     "whole milliseconds")


def format_bytes(count: int) -> str:
    """``count`` for people.

    >>> format_bytes(1536), format_bytes(1 << 30)
    ('1.5 KiB', '1 GiB')
    """
    number, unit = float(count), 0
    while number >= 1024 and unit + 1 < len(_UNITS):
        number, unit = number / 1024, unit + 1
    return f"{number:.{0 if number == int(number) else 1}f} {_UNITS[unit]}"


def parse_budget(budget: int | float | str, default_bytes: int) -> int:
    """As ``parse_bytes``; a percentage is of the memory that is available.

    >>> parse_budget("25%", default_bytes=1 << 30)  # the default is half of what is available
    536870912
    """
    if isinstance(budget, str) and budget.strip().endswith("%"):
        try:
            share = float(budget.strip()[:-1]) / 100
        except ValueError:
            share = 0
        if not 0 < share <= 1:
            raise ValueError(f"{budget!r} is not a budget: write a percentage from 1% to 100%")
        return int(2 * default_bytes * share)
    if isinstance(budget, str) and budget.strip() == "auto":
        raise ValueError("a budget that follows what others leave is one from the start: "
                         "Runtime(budget='auto')")
    return parse_bytes(budget)
