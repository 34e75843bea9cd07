"""What the checks share: a folder on a real file system, and arrays that fit several times."""

import gc
import os
import signal

import numpy as np
import pytest

os.environ.setdefault("OUTCORE_BUDGET", "64M")

import outcore  # noqa: E402


@pytest.fixture(autouse=True)
def hears_ctrl_c():
    """Whoever is started in the background by a shell ignores interrupts; tests that set handlers
    leave none."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def path(tmp_path):
    """A file's name in a folder of its own."""
    return str(tmp_path / "a.dat")


@pytest.fixture
def numbers(tmp_path):
    """A file of 0, 1, 2, … as 64-bit floats: 32 MiB, four times the budget of `small`."""
    name = tmp_path / "numbers.dat"
    np.arange(4 << 20, dtype="f8").tofile(name)
    return str(name)


@pytest.fixture(params=["größe", "Ω"])
def oddly_named(request):
    """Records with a field whose name only Latin-1 has, or not even that."""
    values = np.zeros(5, [(request.param, "<f4"), ("n", "<i4")])
    values["n"] = range(5)
    return values


@pytest.fixture
def small():
    """A runtime of 8 MiB."""
    runtime = outcore.Runtime(budget="8MiB")
    yield runtime
    gc.collect()
    runtime.close()
