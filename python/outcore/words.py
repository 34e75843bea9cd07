"""Words: what options of arrays may be, for type checkers."""

from __future__ import annotations

from typing import Literal

Mode = Literal["r", "r+", "w", "w+", "x", "w-", "a", "c", "rb", "readonly", "readwrite", "write",
               "copyonwrite"]
Order = Literal["C", "F"]
Format = Literal["npy", "raw"]
Advice = Literal["auto", "normal", "random", "sequential"]
RangeAdvice = Literal["normal", "random", "sequential", "will-need", "dont-need", "cold"]
Delivery = Literal["auto", "in-thread", "messages", "mprotect"]
Frames = Literal["auto", "shared", "private"]
OnError = Literal["signal", "zero", "abort"]
