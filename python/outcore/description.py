"""Description: what there is to know about an array, for people."""

from __future__ import annotations

from typing import Any

from . import table
from .elements import Elements
from .sizes import format_bytes


def stats_of(elements: Elements) -> dict[str, Any]:
    """Counters of the store's pages, and some of its runtime."""
    found = elements.region.metrics()
    of_runtime = elements.pager.core.metrics()
    for name in ("budget_bytes", "used_bytes", "used_bytes_max", "fault_p50_ns", "fault_p99_ns"):
        found[name] = of_runtime[name]
    return found


def line_of(head: str, elements: Elements) -> str:
    """``head``, and how the array is."""
    region = elements.region
    if region.is_inherited:
        return f"<{head}, of the parent process>"
    if not region.is_open:
        return f"<{head}, closed>"
    resident_bytes = region.metrics()["resident_bytes"]
    share = min(resident_bytes / region.size_bytes, 1) if elements.nbytes else 0
    return f"<{head}, {format_bytes(elements.nbytes)}, {share:.0%} resident>"


def info_of(kind: str, names: list[tuple[str, str]], elements: Elements, stats: dict[str, Any],
            residency: list[float]) -> table.Table:
    """``names``: rows that tell what it is."""
    s = stats
    resident = s["resident_bytes"] / s["size_bytes"] if s["size_bytes"] else 0
    return table.Table(kind, [
        *names,
        ("No. bytes", f"{elements.nbytes:,} ({format_bytes(elements.nbytes)})"),
        ("Resident", f"{format_bytes(s['resident_bytes'])} ({min(resident, 1):.0%})"),
        ("", table.bar(residency)),
        ("Page", format_bytes(s["page_bytes"])),
        ("Delivery, frames", f"{s['delivery']}, {s['frames']}"),
        ("Budget", f"{format_bytes(s['budget_bytes'])}, "
                   f"{format_bytes(s['used_bytes'])} in use"),
        *table.traffic(s),
        ("Fault p50, p99",
         f"{s['fault_p50_ns'] / 1e3:.0f} µs, {s['fault_p99_ns'] / 1e3:.0f} µs"),
        ("Degraded", "yes: a write-back failed; flush says why" if s["is_degraded"] else "no"),
    ])
