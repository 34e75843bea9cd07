"""Wrong input: one line that says what, where, and what to do."""

import os
import pickle

import numpy as np
import pytest

import outcore


@pytest.mark.parametrize("call, kind, words", [
    (lambda: outcore.open("no/a.npy", "w", 3, "f8"), FileNotFoundError, "make its folder first"),
    (lambda: outcore.open(".", "w", 3, "f8"), IsADirectoryError, "name a file in it"),
    (lambda: outcore.open("a.npy", "x", 3, "f8"), FileExistsError, "name another"),
    (lambda: outcore.open("versioned:no"), FileNotFoundError, "create it first"),
    (lambda: outcore.open("short.npy"), ValueError, "was cut short"),
    (lambda: outcore.zeros(1 << 62), ValueError, "more than there are addresses"),
    (lambda: outcore.zeros(1 << 70, "i1"), ValueError, "more than there are addresses"),
    (lambda: outcore.open("a.npy", "r+").resize(1 << 62), ValueError, "more than there are"),
    (lambda: outcore.Runtime(budget=100), ValueError, "budget = 100 B (the program): "),
    (lambda: outcore.Runtime(budget="900T"), ValueError, "smaller than 16 TiB"),
    (lambda: outcore.Runtime(budget="99999999999T"), ValueError, "more bytes than there are"),
    (lambda: outcore.Runtime(budget=object()), TypeError, "is not a size"),
    (lambda: outcore.Runtime(wait_max="soon"), ValueError, "is not a time"),
    (lambda: outcore.Runtime(keepers=-1), ValueError,
     "'keepers' is -1: write a whole number from 0"),
    (lambda: outcore.Runtime(keepers=1 << 70), ValueError, "write a whole number from 0 to "),
    (lambda: outcore.Runtime(keepers="two"), TypeError, "'keepers' is 'two': write a whole number"),
    (lambda: outcore.Runtime(policy=5), TypeError, "'policy' is 5: write text"),
    (lambda: outcore.set_default_runtime(5), TypeError, "5 is not an outcore.Runtime"),
    (lambda: outcore.open("a.npy", runtime=5), TypeError, "5 is not an outcore.Runtime"),
    (lambda: outcore.open("far://localhost:1"), ValueError, "is new each time"),
    (lambda: outcore.open("a.npy", "w", 1 << 45, "f8"), ValueError, "64 TiB of addresses"),
    (lambda: outcore.open("a.npy", "w", 3, "f8", page="3k"), ValueError, "a power of two"),
    (lambda: outcore.open("a.npy", "w", 3, "f8", delivery="x"), ValueError, "'x'"),
    (lambda: outcore.Arrays("x.oca", "w", processes=0), ValueError, "1 or more"),
    (lambda: outcore.Arrays("x.oca", "w", processes=-1), ValueError, "1 or more"),
    (lambda: outcore.Arrays("x.oca", "w", processes=1.5), TypeError, "as an integer"),
    (lambda: outcore.Arrays("x.oca", "w").alloc("u", -1), ValueError, "lengths are 0 or more"),
    (lambda: outcore.Arrays("x.oca", "w").alloc("u", (1.5,)), TypeError, "as an integer"),
    (lambda: outcore.Arrays("x.oca", "w").alloc("u", (3, 3), tiles=(-1, 3)), ValueError,
     "lengths are 0 or more"),
    (lambda: outcore.Arrays("x.oca", "w").store("u", np.zeros(3), tiles=(1 << 64,)), ValueError,
     "lengths are 0 or more"),
    (lambda: outcore.checkpoint(5, {"a": np.zeros(3)}, pool="p"), TypeError, "is text, not 5"),
    (lambda: outcore.checkpoint("c", {5: np.zeros(3)}, pool="p"), TypeError, "is text, not 5"),
    (lambda: list(outcore.zeros(9).iter_chunks(0)), ValueError, "1 or more"),
    (lambda: list(outcore.zeros(9).iter_chunks(-1)), ValueError, "1 or more"),
])
def test_wrong_input_is_told_in_one_line(call, kind, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.arange(10.0))
    whole = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "short.npy").write_bytes(whole[:150])
    with pytest.raises(kind) as caught:
        call()
    assert words in str(caught.value) and "\n" not in str(caught.value)
    assert "RuntimeOptions" not in str(caught.value)
    assert (tmp_path / "a.npy").read_bytes() == whole


def test_a_resize_that_fails_leaves_the_array_as_it_was(tmp_path):
    name = str(tmp_path / "a.npy")
    np.save(name, np.arange(10.0))
    with outcore.open(name, "r+") as a:
        with pytest.raises(OSError):
            a.resize(1 << 59)  # no file system has that
        assert a.shape == (10,) and a[3] == 3
        a[3] = 33
        assert np.asarray(a)[3] == 33
    assert np.load(name)[3] == 33


def test_options_have_the_names_of_the_config_file():
    with outcore.Runtime(budget="8MiB", wait_max="2min", high_watermark=90,
                         low_watermark=80) as runtime:
        assert runtime.options["wait_max"] == ("2min", "the program")


def test_a_budget_may_follow_what_others_leave(tmp_path):
    with outcore.Runtime(budget="auto", budget_min="4MiB", budget_max="64MiB") as runtime:
        assert runtime.options["budget"][0] == "auto"
        assert runtime.options["budget_min"] == ("4 MiB", "the program")
        assert 4 << 20 <= runtime.budget <= 64 << 20
        with pytest.raises(ValueError, match="from the start"):
            runtime.budget = "auto"
        runtime.budget = "8MiB"
        assert runtime.budget == 8 << 20
    np.save(tmp_path / "a.npy", np.arange(10.0))
    with outcore.open(tmp_path / "a.npy", budget="auto") as a:
        with pickle.loads(pickle.dumps(a)) as again:
            assert again.runtime.options["budget"][0] == "auto"
            assert again[3] == 3


def test_bounds_of_a_budget_that_make_no_sense_are_refused():
    for options in ({"budget": "auto", "budget_min": "64MiB", "budget_max": "32MiB"},
                    {"budget": "32MiB", "budget_max": "64MiB"}):
        with pytest.raises((OSError, ValueError), match="budget_max"):
            outcore.Runtime(**options)
    with pytest.raises(ValueError, match="'auto' is not a size"):
        outcore.Runtime(budget="auto", budget_min="auto")


def test_persistent_memory_of_a_region_is_a_file(tmp_path):
    for name, parameter in (("a", ""), ("b", "?map_sync=off")):
        with outcore.open(f"pmem:{tmp_path}/{name}.npy{parameter}", "w", 10, "f8") as a:
            a[...] = 7
        assert np.array_equal(np.load(tmp_path / f"{name}.npy"), np.full(10, 7.0))
    with pytest.raises((OSError, ValueError), match="map_sync=of is unknown .*write on or off"):
        outcore.open(f"pmem:{tmp_path}/a.npy?map_sync=of")
    with outcore.Arrays(f"pmem:{tmp_path}/a.oca?map_sync=off", "w") as arrays:
        arrays["u"] = np.arange(10)
    assert np.array_equal(outcore.Arrays(f"pmem:{tmp_path}/a.oca")["u"][...], np.arange(10))


def test_modes_of_stores_that_are_no_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = "versioned:pool?object=a"
    os.mkdir("pool")  # one that is empty is as good as none
    with outcore.open(url, "x", 10, "f8") as a:
        a[...] = 7
        a.sync()
        with outcore.Runtime(budget="8MiB"):
            here = pickle.dumps(a)
    os.mkdir("elsewhere")
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pickle.loads(here) as b:
        assert b.sum() == 70
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileExistsError):
        outcore.open(url, "x", 10, "f8")
    with outcore.open(url, "a", 10, "f8") as a:
        assert a.sum() == 70
    with outcore.open(url, dtype="f8") as a:
        assert a.sum() == 70
    with outcore.open(url, "w", 10, "f8") as a:
        assert a.sum() == 0
    with pytest.raises(FileNotFoundError):
        outcore.open("versioned:pool?object=b", "r+")
