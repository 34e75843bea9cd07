"""Records of runs that tests make, and the pages that are made of them."""

import html.parser
import json
import re

import programs

PAGE_BYTES_MAX = 1_000_000
BEGIN = '<script type="application/json" id="runs">'


def runs_in(page):
    begin = page.index(BEGIN) + len(BEGIN)
    return json.loads(page[begin:page.index("</script>", begin)])["runs"]


def frame_of(page):
    """The page without its title and its records."""
    begin = page.index(BEGIN)
    records = page[begin:page.index("</script>", begin)]
    assert "</" not in records and "<!--" not in records
    bare = page.replace(records, "")
    for tag in ("title", "noscript"):
        bare = re.sub(f"<{tag}>.*?</{tag}>", "", bare, count=1, flags=re.DOTALL)
    return bare


class Elements(html.parser.HTMLParser):
    """What a page without scripts consists of: names of elements, and its text."""

    def __init__(self, page):
        super().__init__()
        self.names, self.text = set(), ""
        self.feed(re.search("<noscript>(.*?)</noscript>", page, re.DOTALL).group(1))

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)

    def handle_data(self, data):
        self.text += data


def full_map(columns=120, rows=64):
    """A heat map with something in each cell, in numbers that do not pack."""
    cells = [100_000 + 7 * i % 1000 for i in range(columns * rows)]
    return {"columns": columns, "rows": rows, "seconds": 12.0, "bytes": rows * 65536,
            "fills": cells, "evictions": cells, "refaults": cells[:-1]}


def numbers_in(cells):
    return [0] * -cells if cells < 0 else [cells]


def record(**changes):
    """A record of a run that paged; with other members."""
    counters = {"faults": 1000, "fills": 900, "refaults": 500, "evictions": 800,
                "read_bytes": 4096 * 900, "read_requests": 900, "fault_ns": 500_000_000}
    made = {"format": "outcore-run", "version": 1,
            "program": {"command": "scan data", "pid": 7, "seconds": 1.0,
                        "started": "2026-01-01T00:00:00Z"},
            "environment": {"outcore": "1", "kernel": "6", "host": "h", "processors": 2,
                            "memory_bytes": 1 << 30},
            "settings": {"policy": "auto"}, "counters": counters,
            "gauges": {"budget_bytes": 4 << 20, "used_bytes_max": 4 << 20},
            "latency": {"buckets": [0] * 12 + [1000]},
            "timeline": {"step_s": 0.1, "fills": [900], "stalled_s": [0.5]},
            "files": [{"uri": "/data", "size_bytes": 8 << 20, "page_bytes": 4096,
                       "counters": counters, "touched_bytes": 4096 * 400, "fetches": ""}],
            "sites": [], "sampled_faults": 0, "tuner": [], "lost_events": 0,
            "miss_curve": {"sampled_one_in": 1, "points": []}}
    made.update(changes)
    return made


class RecordTest(programs.SightTest):
    def write(self, *records, name="run.json"):
        path = self.folder / name
        lines = [one if isinstance(one, str) else json.dumps(one) for one in records]
        path.write_text("".join(line + "\n" for line in lines))
        return path

    def page_of(self, path):
        self.run_outcore("report", path, "-o", self.folder / "page.html")
        return (self.folder / "page.html").read_text()

    def one_of_scan(self, scan=None):
        done = self.scan("--report", self.folder / "run.json", scan=scan)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.folder / "run.json"
