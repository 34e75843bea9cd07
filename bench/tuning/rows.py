"""rows: what `make bench-tuning` compares: the default settings with the best of a sweep."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    name: str
    workload: str
    options: tuple[str, ...]
    # Deliveries to try beside the default; a heap's and a server's take long by messages.
    deliveries: tuple[str, ...] = ("in-thread", "messages")


def _row(name, line, **more):
    workload, *options = line.split()
    return Row(name, workload, tuple(options), **more)


HALF, QUARTER = "--size 512M --budget 256M", "--size 512M --budget 128M"
TOUCHES = "--latency off --touches"

ROWS = (
    _row("fits-1", f"random-io --size 90M --budget 112M --threads 1 {TOUCHES} 100000"),
    _row("fits-4", f"random-io --size 90M --budget 112M --threads 4 {TOUCHES} 100000"),
    _row("random-1", f"random-io {QUARTER} --threads 1 {TOUCHES} 200000"),
    _row("random-4", f"random-io {QUARTER} --threads 4 {TOUCHES} 400000"),
    _row("random-16", f"random-io {QUARTER} --threads 16 {TOUCHES} 400000"),
    _row("writes-4", f"random-io {QUARTER} --threads 4 --write-percent 50 {TOUCHES} 300000"),
    _row("zipf-4", f"random-io {QUARTER} --threads 4 --distribution zipf {TOUCHES} 600000"),
    _row("scan-1", f"scan {QUARTER} --threads 1"),
    _row("scan-4", f"scan {QUARTER} --threads 4"),
    _row("third-4", f"scan {QUARTER} --threads 4 --stride 3"),
    _row("backward-4", f"scan {QUARTER} --threads 4 --backward"),
    _row("sort-half", f"sort {HALF}"),
    _row("sort-quarter", f"sort {QUARTER}"),
    _row("bfs-1", "bfs --scale 20 --budget 128M --threads 1"),
    _row("bfs-4", "bfs --scale 20 --budget 128M --threads 4"),
    _row("bfs-96", "bfs --scale 20 --budget 128M --threads 96"),
    _row("map-4", f"map-lookup {QUARTER} --structure map --threads 4 --touches 20000"),
    _row("hash-4", f"map-lookup {QUARTER} --structure hash --threads 4 --touches 40000"),
    _row("vector-4", f"map-lookup {QUARTER} --structure vector --threads 4 --touches 20000"),
    _row("three-parts-1", f"three-parts {QUARTER} --threads 1"),
    _row("three-parts-4", f"three-parts {QUARTER} --threads 4 --touches 400000"),
    _row("stream", "stream --size 192M --budget 64M --passes 3 --threads 2"),
    _row("jacobi", "jacobi --size 192M --budget 64M --passes 2 --threads 2"),
    _row("graph-construct", "graph-construct --scale 18 --budget 64M --threads 2"),
)
