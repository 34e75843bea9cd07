#!/usr/bin/env python3
"""check_banned: calls and words that have no place in the project, each with the reason.

Usage: tools/check_banned.py [ROOT]. Prints one line a problem; exit status 1 if there is one.
A line that needs one all the same says so: `// banned-ok: reason`.
"""

import fnmatch
import pathlib
import re
import sys

import sources

# Files on the fault path: whoever faults runs them, perhaps while holding any lock of the program.
FAULT_PATH = [
    "core/paging/cluster_filler.cc",
    "core/paging/eviction.cc",
    "core/paging/failed_pages.cc",
    "core/paging/fault*.cc",
    "core/paging/fill*.cc",
    "core/paging/frame_supply.cc",
    "core/paging/page_batch.cc",
    "core/paging/prefetcher.cc",
    "core/paging/readahead.cc",
    "core/paging/remapper.cc",
    "core/paging/keeper.cc",
    "core/paging/shared_filler.cc",
    "core/paging/victim_*.cc",
    "core/paging/written_victims.cc",
    "core/prefetch/fetch_tuner.cc",
    "core/prefetch/stream_table.cc",
    "core/buffer/claims.cc",
    "core/buffer/occupancy.cc",
    "core/buffer/pins.cc",
    "core/buffer/puncher.cc",
    "core/buffer/room.cc",
    "core/published/events.cc",
    "core/budget/bounce_pool.cc",
    "core/os/fault_ranges.cc",
    "core/os/memory_advice.cc",
    "core/os/signal_delivery*.cc",
]
ALL_CODE = ["*.h", "*.cc", "*.c"]
PRODUCTS = ["core/*", "far/*", "checkpoints/*", "heaps/*", "arrays/*", "umap/*",
            "run/*"]
LIBRARY = [*PRODUCTS, "include/*"]
TESTS = ["tests/*.cc", "tests/*.c", "tests/*.h", "*/tests/*.cc", "*/tests/*.c", "*/tests/*.h"]
# In a product's folder, and not of the library.
BESIDE_LIBRARY = ["*/tests/*", "*/commands/*", "arrays/formats/*", "heaps/occ/*",
                  "*/CMakeLists.txt", "*.md"]
EVERYTHING = ["*"]
# Files that must name what they forbid.
EXEMPT = {"tools/check_banned.py", "tests/tools/test_check_banned.py"}


class Rule:
    """Where a pattern is banned and why. Comments count only for rules about words, what literals
    say only for those and for rules about literals."""

    def __init__(self, globs, pattern, reason, is_about_words=False, is_about_literals=False):
        self.globs = globs
        self.pattern = re.compile(pattern)
        self.reason = reason
        self.is_about_words = is_about_words
        self.is_about_literals = is_about_literals

    def covers(self, path):
        globs = self.globs
        if self.is_about_literals and any(fnmatch.fnmatch(str(path), glob) for glob in TESTS):
            return False
        if any(fnmatch.fnmatch(str(path), glob) for glob in BESIDE_LIBRARY):
            globs = [glob for glob in globs if glob not in LIBRARY]
        return any(fnmatch.fnmatch(str(path), glob) for glob in globs)


# The schemes of stores; who is one to ask is the kind (outcore/store_kind.h).
SCHEMES = "file|pmem|sparse|scratch|memory|versioned|redis|far|rbd"


def call(names):
    """A pattern for a call of one of these, not of a member or a longer name."""
    return rf"(?<![\w.>])(?:{names})\s*\("


RULES = [
    Rule(ALL_CODE, call("strcpy|strcat|stpcpy|sprintf|vsprintf|gets"), "knows no bound: snprintf"),
    Rule(ALL_CODE, call("rand|srand|drand48"), "cannot be replayed: a seeded generator"),
    Rule(ALL_CODE, call("atoi|atol|atoll|atof"), "takes anything: strtoull, or parse_bytes"),
    Rule(ALL_CODE, call("strtok|asctime|ctime|localtime|gmtime|readdir_r|tmpnam|mktemp"),
         "is not safe among threads: the _r form, or mkstemp"),
    Rule(ALL_CODE, call("alloca"), "has no limit: a named maximum"),
    Rule(ALL_CODE, r"(?:\.|->)detach\s*\(\s*\)", "leaves a thread that nobody ends: join it"),
    Rule(ALL_CODE, r"\busing\s+namespace\s+std\b", "hides where names come from"),
    Rule(ALL_CODE, r"\bstd::endl\b", "flushes: '\\n'"),
    Rule(ALL_CODE, r"\b\w*(?:Manager|Helper|Backend|Worker|Utils?)\b",
         "says nothing, or is a synonym: a word of ARCHITECTURE.md"),
    Rule(LIBRARY, r"\bthrow\b", "Outcore throws nothing: return a Result"),
    Rule(LIBRARY, r"(?<![\w.>:])(?:std::|::)?(?:exit|quick_exit|system|popen)\s*\(",
         "a library neither ends its program nor runs a shell: return an error"),
    Rule(LIBRARY, r"\bstd::(?:cout|cin)\b", "standard output belongs to the program"),
    Rule(PRODUCTS, r"(?<!_)\bassert\s*\(", "vanishes with NDEBUG: OC_CHECK or OC_ASSERT"),
    Rule(LIBRARY, r"\bvolatile\b(?!.*\basm\b)", "is no synchronisation: std::atomic"),
    Rule(TESTS, r"\b(?:sleep|usleep|nanosleep|clock_nanosleep|sleep_for|sleep_until)\s*\(",
         "waits in place of a condition: wait for what must happen"),
    Rule(TESTS, r"\b(?:EXPECT|ASSERT)_(?:LT|LE|GT|GE)\s*\([^;]*\b\w*(?:elapsed|seconds|duration)",
         "a timed assertion fails on a busy machine: count events"),
    Rule(TESTS, r"\bDISABLED_\w+", "a test that does not run proves nothing: mend or remove it"),
    Rule(TESTS, r"\bGTEST_SKIP\s*\(\s*\)\s*;", "a skip gives its reason"),
    Rule(TESTS, r"\b(?:EXPECT|ASSERT)_TRUE\s*\(\s*true\s*\)|\bSUCCEED\s*\(\s*\)",
         "cannot fail: assert what was to be shown"),
    Rule(FAULT_PATH, call("malloc|calloc|realloc|free|posix_memalign|aligned_alloc|strdup"),
         "the fault path allocates nothing"),
    Rule(FAULT_PATH, r"\bnew\b(?!\s*\()|\bdelete\b(?!\s*;)|\bstd::make_(?:unique|shared)\b",
         "the fault path allocates nothing"),
    Rule(FAULT_PATH, r"\bstd::(?:string|vector|deque|map|unordered_map|set|list|function|format)\b",
         "allocates: the fault path allocates nothing"),
    Rule(FAULT_PATH, r"\bstd::(?:\w*mutex|lock_guard|unique_lock|scoped_lock|shared_lock|"
         r"condition_variable\w*|call_once)\b|\bpthread_\w*lock\s*\(",
         "the fault path takes no lock that the program could hold"),
    Rule(FAULT_PATH, r"(?<!\w)(?:printf|fprintf|puts|fputs|fwrite|std::cerr|syslog)\b",
         "locks a stream: write(2)"),
    Rule(ALL_CODE, rf'(?:\.starts_with\(|[=!]=)\s*"(?:{SCHEMES}):/{{0,2}}"'
         rf'|\bscheme\w*(?:\(\w*\))?\s*[=!]=\s*"|constexpr[^=]*= "(?:{SCHEMES}):"',
         "asks for a scheme: ask the kind (kind_of_scheme) for what it can do",
         is_about_literals=True),
    Rule(EVERYTHING, r"\b(?:TODO|FIXME|XXX|HACK)\b", "do it, or open an issue", True),
    Rule(EVERYTHING, r"(?<![\w.$}])/(?:work|tmp|root|home)/\w",
         "a path of one machine: TMPDIR, mktemp, or a relative path", True),
    Rule(EVERYTHING, r"(?i)\bissue #?\d+\b", "nobody can look it up: say the reason itself", True),
]


def check_file(path, text):
    if str(path) in EXEMPT:
        return []
    is_cpp = path.suffix in sources.CPP_SUFFIXES
    lines = text.split("\n")
    code = sources.strip_cpp(text).split("\n") if is_cpp else lines
    told = sources.strip_cpp(text, keep_literals=True).split("\n") if is_cpp else lines
    found = []
    for rule in (r for r in RULES if r.covers(path)):
        seen = lines if rule.is_about_words else told if rule.is_about_literals else code
        for number, line in enumerate(seen, 1):
            match = rule.pattern.search(line)
            if match and "banned-ok: " not in lines[number - 1]:
                what = match.group(0).strip().rstrip("(").strip()
                found.append(sources.problem(path, number, f"'{what}': {rule.reason}"))
    return found


def is_text(root, path):
    with open(root / path, "rb") as file:
        return b"\0" not in file.read(4096)


def main(arguments):
    root = pathlib.Path(arguments[0]).resolve() if arguments else sources.ROOT
    files = [p for p in sources.list_files(root) if is_text(root, p)]
    problems = [line for p in files for line in check_file(p, sources.read(root, p))]
    return sources.report("check_banned", problems, len(files))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
