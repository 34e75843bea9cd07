"""tiny: a run of an experiment of the papers with so little data that it takes some tenths of a
second, for its answer."""

import dataclasses
import re

from experiment import BY_HAND, FAR, is_ours, options_of

BUDGET_BYTES_MIN = 256 << 10  # with pages of 4 KiB
PAGES_MIN = 32  # of larger ones
SHARED_BYTES_MIN = 4 << 20  # of a budget that processes share
ROOM = "1G"  # for all data of a run, and for hundreds of threads
SHRINK = 64
SHRINK_LESS = 16  # where the least budget is larger, or the paper's a few percent of the data
SHRINK_BY_HAND = 8
UNITS = {"k": 10, "M": 20, "G": 30}
LIMIT_SECONDS = 120  # of a run, however busy the machine is: nothing here is about time
FEW = 1000  # touches that are counted because each is a page by itself
INSTEAD = {
    "--class": "S",
    "--tile": "64",  # a matrix of 16 MiB has a row as long as the experiment's tile, a tiny one not
}


def bytes_of(text):
    return int(text[:-1]) << UNITS[text[-1]] if text[-1] in UNITS else int(text)


def _in_kib(size_bytes):
    return f"{-(-size_bytes // 4096) * 4}k"


def _value(words, option, otherwise):
    return words[words.index(option) + 1] if option in words else otherwise


def tiny(experiment, point, column):
    """The experiment and the point for this column. Outcore has the same part of the data for
    budget, as far as that can be; who can do nothing without room has room for all."""
    if experiment.by == BY_HAND:
        return (dataclasses.replace(experiment, limit_seconds=LIMIT_SECONDS),
                dataclasses.replace(point, options=_with_less_data(point.options)))
    words = [*experiment.options.split(), *point.options, *options_of(column)]
    is_shared = "--processes" in words and not _is_divided(words)
    shrink = SHRINK_LESS if is_shared or experiment.on == FAR else SHRINK
    options = _smaller(experiment.options.split(), shrink)
    of_point = _smaller(point.options, shrink)
    words = [*options, *of_point, *options_of(column)]
    budget = _value(words, "--budget", None)
    if budget is not None:
        options, of_point = _without_budget(options), _without_budget(of_point)
        of_point += ["--budget", _budget(budget, words, column)]
    return (dataclasses.replace(experiment, options=" ".join(options),
                                limit_seconds=LIMIT_SECONDS),
            dataclasses.replace(point, options=tuple(of_point)))


def _with_less_data(words):
    """Budgets stay: those of the profiles follow from them."""
    small = _smaller(words, SHRINK_BY_HAND)
    return tuple(word if before == "--budget" else less
                 for before, word, less in zip(("", *words), words, small))


def _budget(budget, words, column):
    if not is_ours(column) and column not in ("two-pass", "swap"):
        return ROOM
    asked = bytes_of(budget) if not budget.endswith("%") else int(
        bytes_of(_value(words, "--size", "0")) * float(budget[:-1]) / 100)
    page = bytes_of(_value(words, "--page", "4k"))
    processes = int(_value(words, "--processes", "1"))
    least = PAGES_MIN * page if page > 4096 else BUDGET_BYTES_MIN
    if processes > 1:
        least = processes * least if _is_divided(words) else max(least, SHARED_BYTES_MIN)
    return _in_kib(max(asked, least))


def _is_divided(words):
    """Each process has a part of the budget."""
    return _value(words, "--share", "auto") == "off"


def _without_budget(words):
    if "--budget" not in words:
        return words
    at = words.index("--budget")
    return [*words[:at], *words[at + 2:]]


def _smaller(words, shrink):
    return [_smaller_value(option, word, shrink) for option, word in zip(("", *words), words)]


def _smaller_value(option, value, shrink):
    if option in ("--size", "--budget") and not value.endswith("%"):
        return _in_kib(bytes_of(value) // shrink)
    if option == "--scale":  # of two: vertices, and with them edges
        return str(int(value) - SHRINK.bit_length() + 1)
    if option == "--touches":
        return str(int(value) // (3 if int(value) <= FEW else shrink))
    if option == "--reads":
        return str(int(value) // 10)
    return INSTEAD.get(option, value)


def points_of(experiment):
    """Of points that differ by numbers alone the first and the last; all others."""
    by_shape = {}
    for point in experiment.points:
        words = [*point.options, *(word for pair in point.variables for word in pair)]
        shape = tuple(re.sub(r"[0-9]+[kMG%]?", "#", word) for word in words)
        by_shape.setdefault(shape, []).append(point)
    ends = [point for alike in by_shape.values() for point in (alike[0], alike[-1])]
    return [point for point in experiment.points if point in ends]
