"""Table: names and values, aligned, for terminals and notebooks."""

from __future__ import annotations

import html
from typing import Any

from .sizes import format_bytes

_MARKS = " .:-=+*#%@"


class Table:
    """Prints as aligned text, and as HTML in a notebook.

    >>> Table("Thing", [("Shape", "(2, 3)"), ("No. bytes", "48")])
    Thing
    Shape     : (2, 3)
    No. bytes : 48
    """

    def __init__(self, title: str, rows: list[tuple[str, str]]) -> None:
        self.title = title
        self.rows = rows

    def __repr__(self) -> str:
        width = max(len(name) for name, _ in self.rows)
        return "\n".join([self.title, *(f"{name:<{width}} : {value}" for name, value in self.rows)])

    def _repr_html_(self) -> str:
        cell = "text-align:left;padding:1px 12px 1px 0"
        rows = "".join(f'<tr><th style="{cell}">{html.escape(name)}</th>'
                       f'<td style="{cell}">{html.escape(value)}</td></tr>'
                       for name, value in self.rows)
        return f"<div><b>{html.escape(self.title)}</b><table>{rows}</table></div>"


def traffic(stats: dict[str, Any]) -> list[tuple[str, str]]:
    """The rows that tell what was moved."""
    fills = stats["fills"] + stats["prefetch_fills"]
    return [
        ("Faults", f"{stats['faults']:,}"),
        ("Fills", f"{fills:,}, {stats['prefetch_fills']:,} of them ahead of a fault"),
        ("Read", format_bytes(stats["read_bytes"])),
        ("Written", format_bytes(stats["written_bytes"])),
        ("Evictions", f"{stats['evictions']:,}"),
    ]


def bar(shares: list[float]) -> str:
    """A strip of one character a share, from ' ' for none to '@' for all.

    >>> bar([0, 0.01, 0.5, 1])
    '[ .+@]'
    """
    return "[" + "".join(_MARKS[0 if s <= 0 else 1 + round(s * 8)] for s in shares) + "]"


def html_bar(shares: list[float]) -> str:
    """The same as an SVG image, the file's offsets from left to right."""
    width = 6
    cells = "".join(f'<rect x="{i * width}" y="0" width="{width}" height="12" '
                    f'fill="#2a7" fill-opacity="{s:.2f}"/>' for i, s in enumerate(shares))
    full = width * len(shares)
    return (f'<svg width="{full}" height="12" role="img" aria-label="what is resident">'
            f'<rect width="{full}" height="12" fill="none" stroke="#888"/>{cells}</svg>')
