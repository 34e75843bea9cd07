"""decision_tree: what the paper on UMap would set for a workload (its section 6.1), from a profile
of the workload, and what that gives beside Outcore's defaults.

The paper has the questions, and no thresholds; those here are ours (decision 0069).
"""

from dataclasses import dataclass

from bench_command import Failed
from experiment import BY_HAND, UMAP, Experiment, Point

PAGES = ("4k", "16k", "64k", "256k", "1M")
USED_MIN = 0.5  # of a page of 16 KiB: otherwise pages are small
SLOWER = 0.97  # of the rate by the page before: more than runs of one kind differ in most cases
NEARLY_FITS_MIN = 0.1  # of the touches would hit in twice the memory
WRITES_MIN = 0.5  # bytes that are written over those that are read
UMAP_MARKS, HIGH_MARKS = ("90", "70"), ("99", "95")

# Nothing comes in that was not touched, and what came first leaves first.
PAGE_BY_PAGE = {"OUTCORE_FETCH": "page", "OUTCORE_READAHEAD": "0", "OUTCORE_POLICY": "fifo"}
BY_TREE = "outcore, by the tree"


@dataclass(frozen=True)
class Choice:
    page: str
    marks: tuple[str, str]  # of the budget, in percent: above the first pages leave, to the second
    evictors: int

    def variables(self):
        high, low = self.marks
        return {**PAGE_BY_PAGE, "OUTCORE_HIGH_WATERMARK": high, "OUTCORE_LOW_WATERMARK": low,
                "OUTCORE_KEEPERS": str(self.evictors)}

    def text(self):
        return f"{self.page}, {self.marks[0]} to {self.marks[1]} %, {self.evictors}"


def touches_of(reuse):
    return reuse["first"] + sum(reuse["again"])


def least_bytes(bucket):
    """Of a distance in this place of `again`."""
    return 0 if bucket == 0 else 4096 << (bucket - 1)


def share_within(reuse, size_bytes):
    """Of all touches that were seen, those again with less than `size_bytes` between; of a bucket
    that lies across, a part."""
    count = 0.0
    for bucket, touches in enumerate(reuse["again"]):
        least, end = least_bytes(bucket), 4096 << bucket
        count += touches * min(1.0, max(0.0, (size_bytes - least) / (end - least)))
    return count / max(1, touches_of(reuse))


def used_of(narrow, wide):
    """How much of four pages together is used: if all of it is, a fourth of the touches fault; if
    one page alone, as many as before, or more, as there is room for fewer."""
    return narrow["faults"] / (4 * max(1, wide["faults"]))


def is_written(line):
    return line["written_bytes"] >= WRITES_MIN * max(1, line["read_bytes"])


def choice_of(profile, used, budget_bytes, rate_by):
    """`used`: of pages of 16 KiB. `rate_by(choice)` measures; it is called for one page size after
    the other, as long as the larger one is no slower."""
    evictors = 2 if is_written(profile) else 1
    if used < USED_MIN:
        nearly = share_within(profile["reuse"], 2 * budget_bytes) >= NEARLY_FITS_MIN
        return Choice(PAGES[0], HIGH_MARKS if nearly else UMAP_MARKS, evictors)
    best, rate = None, 0.0
    for page in PAGES:
        choice = Choice(page, UMAP_MARKS, evictors)
        found = rate_by(choice)
        if best is not None and found < SLOWER * rate:
            break
        best, rate = choice, found
    return best


def miss_bytes(line):
    """That a touch of an absent page brought in, in the mean."""
    return line["fills"] * line["page_bytes"] / max(1, line["faults"])


def _in_little(words):
    at = words.index("--budget") + 1
    return (*words[:at], SMALL_BUDGETS[words[at]], *words[at + 1:])


def _ended(line):
    """What was stopped has no counts. Of the pages that are tried, it is slower than any."""
    if line["stopped"]:
        raise Failed(f"{line['workload']} by pages of {line['page_bytes'] or 4096} was stopped")
    return line


def lines_of(run, words, column):
    """`run(words, variables)` gives a line of `outcore bench`. By the tree: two profiles, a run by
    each page that is tried, and one by what is chosen, which is told."""
    if column != BY_TREE:
        return [_ended(run(words, {}))]
    profile = _ended(run((*_in_little(words), "--reuse"), PAGE_BY_PAGE))
    wide = _ended(run((*_in_little(words), "--page", "16k"), PAGE_BY_PAGE))
    used = used_of(profile, wide)
    budget_bytes = run_bytes(words[words.index("--budget") + 1])

    def by(choice):
        return run((*words, "--page", choice.page), choice.variables())

    choice = choice_of(profile, used, budget_bytes, lambda one: by(one)["rate"])
    seen = {"used": used, "nearly": share_within(profile["reuse"], 2 * budget_bytes),
            "written": profile["written_bytes"] / max(1, profile["read_bytes"])}
    return [{**_ended(by(choice)), "choice": choice.text(), "seen": seen}]


def run_bytes(text):
    return int(text.removesuffix("M")) << 20


# A sixteenth of the data beside half of it; of the heap a quarter, with less of which it takes
# minutes.
SMALL_BUDGETS = {"32M": "4M", "4M": "2M"}
_SMALL = "--size 64M --budget 32M --threads 4"
APPLICATIONS = {
    # Its name: the command; what the paper set by its tree.
    "sort": (f"sort {_SMALL}", "8 MiB"),
    "bfs": ("bfs --scale 18 --budget 32M --threads 4", "32 to 256 KiB"),
    "ycsb": (f"ycsb {_SMALL} --mix A --touches 50000 --latency off", "256 KiB"),
    "kmers": (f"kmers {_SMALL} --reads 500", "4 KiB"),
    "images": (f"images {_SMALL} --touches 500", ""),
    "graph": ("graph-construct --scale 14 --budget 4M --threads 2", "16 to 256 KiB"),
}
REUSE = Experiment(
    "reuse", UMAP, "Reuse distances", "section 6.1", "", "", "application",
    tuple(Point(name, (*_in_little(tuple(words.split())), "--reuse"), "",
                tuple(PAGE_BY_PAGE.items()))
          for name, (words, _) in APPLICATIONS.items()),
    "the tree begins with how much of what was fetched is used again, by knowledge or by a "
    "profile; in words: good in sort and search, relatively low in the database, low in LMAT", 0,
    (),
    "How many bytes of other pages are touched between two touches of a page, as Outcore records "
    "it. It sees the touches that fault: with a sixteenth of the data as budget (of the graph a "
    "quarter), and pages brought in one by one, what returns sooner is mostly unseen, and what "
    "returns later may be too near by that much. \"first\" is of pages not touched before; all "
    "other touches are again. \"beside the last\": the miss is within 1 MiB of the last one of "
    "its thread and place in the code: also one image after the other, and by chance much in the "
    "graph's heap of 7 MiB.", rivals=(), shows="reuse",
    keys=(("", "reuse"), ("", "data_bytes"), ("", "budget_bytes")))
TREE = Experiment(
    "tree", UMAP, "The decision tree, and what is chosen without it", "section 6.1", "", "",
    "application",
    tuple(Point(name, tuple(words.split()), told) for name, (words, told) in APPLICATIONS.items()),
    "page, watermarks, buffer and threads are chosen by a tree of questions for each application; "
    "no figure", 0, (),
    "The tree's questions are asked of profiles as above, by pages of 4 and 16 KiB: how much of "
    "the larger ones is used, as their number of faults tells; how many touches would hit in "
    "twice the memory; how much is written. What it chooses (a "
    "page, up to which pages leave, threads that evict) is set as UMap would have it: eviction in "
    "order of arrival, nothing brought in but the page. Larger pages are tried until the next is "
    "slower. The thresholds are ours ([decision 0069](../internals/decisions/"
    "0069-reuse-distances.md)). Outcore has its defaults: pages of 4 KiB; what a miss brings in is "
    "the mean of all. Of k-mers and images, whose touches are random, what the tree wins is that "
    "nothing is guessed: runs end in half a second, in which the defaults have hardly seen that "
    "guesses are of no use.", rivals=(BY_TREE,), shows="tree", by=BY_HAND,
    keys=(("", "choice"), ("", "seen"), ("", "policy"), ("", "fills"), ("", "faults"),
          ("", "page_bytes")))
