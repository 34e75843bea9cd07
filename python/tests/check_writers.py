"""Processes that were sent an array and write parts of one page at the same time lose nothing."""

import multiprocessing
import os
import pickle

import numpy as np
import pytest

import outcore


def write_each(part, first, barrier):
    """In another process: every second element, while the other process writes the rest."""
    part[first::2] += 1
    barrier.wait(60)
    part[first::2] += 1
    part.flush()


@pytest.mark.parametrize("as_part", [False, True])
@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_processes_that_write_one_page_lose_nothing(path, method, as_part):
    context = multiprocessing.get_context(method)
    barrier = context.Barrier(2)
    np.zeros(10_000).tofile(path)
    with outcore.open(path, "r+", dtype="f8") as a:
        text = pickle.dumps(a[1:] if as_part else a)
        writers = [context.Process(target=write_pickled, args=(text, first, barrier))
                   for first in range(2)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
            assert writer.exitcode == 0
    found = np.fromfile(path)
    assert np.all(found[1:] == 2) and found[0] == (0 if as_part else 2)


def write_pickled(text, first, barrier):
    write_each(pickle.loads(text), first, barrier)


def test_whoever_wants_no_buffer_sends_none(path):
    np.zeros(10).tofile(path)
    for buffer, name in (("none", None), (f"mine-{os.getpid()}", f"mine-{os.getpid()}")):
        with outcore.Runtime("4MiB", buffer=buffer) as runtime, \
                runtime.open(path, "r+", dtype="f8") as a:
            assert a.__reduce__()[1][1][-1] == name
    with outcore.open(path, "r+", dtype="f8") as a, pickle.loads(pickle.dumps(a)) as b:
        assert b.runtime.options["buffer"][0] == "none"  # it stays where it came from
