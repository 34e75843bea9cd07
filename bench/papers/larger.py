"""larger: an experiment with more data than its small size: sizes, budgets and counts times a
number, so that what a run costs once counts less. The papers have hundreds of GB."""

import dataclasses

from experiment import BENCH

TIMES_MAX = 1024
_BYTES = ("--size", "--budget", "--memory-part")
_COUNTS = ("--touches", "--reads")


def is_power_of_two(times):
    return times > 0 and times & (times - 1) == 0


def can_grow(experiment):
    """What other programs run, what has a class of the NAS benchmarks, and what is real, is of one
    size; and what is about sizes has some already."""
    return (experiment.by == BENCH
            and not {"--class", "--genomes"} & set(experiment.options.split())
            and not any("--scale" in point.options for point in experiment.points))


def larger(experiment, times):
    """REQUIRES: is_power_of_two(times); can_grow(experiment), or times is 1"""
    if times == 1:
        return experiment
    assert can_grow(experiment) and is_power_of_two(times)
    points = tuple(dataclasses.replace(point, options=_larger_words(point.options, times))
                   for point in experiment.points)
    return dataclasses.replace(
        experiment, points=points, base_bytes=experiment.base_bytes * times,
        options=" ".join(_larger_words(experiment.options.split(), times)),
        limit_seconds=experiment.limit_seconds * times)


def _larger_words(words, times):
    return tuple(_larger_value(option, word, times)
                 for option, word in zip(("", *words), words))


def _larger_value(option, value, times):
    if option in _COUNTS:
        return str(int(value) * times)
    if option == "--scale":  # of two: vertices, and with them edges
        return str(int(value) + times.bit_length() - 1)
    if option in _BYTES and not value.endswith("%"):
        number, unit = value[:-1], value[-1]
        assert number.isdigit() and unit in "kMG", value
        return f"{int(number) * times}{unit}"
    return value
