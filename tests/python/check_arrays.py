"""Containers of named arrays: mappings whose arrays are read and written by parts."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import outcore


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.oca"


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i1", "u2", "i8", "c16", "?", "S12", ">i4",
                                   "M8[ns]", [("x", "f4"), ("n", "i8")]])
def test_what_is_stored_is_loaded(path, dtype):
    values = np.arange(24).astype("i8").reshape(2, 3, 4)
    values = np.zeros(values.shape, dtype) if isinstance(dtype, list) else values.astype(dtype)
    if isinstance(dtype, list):
        values["n"] = np.arange(24).reshape(2, 3, 4)
    with outcore.Arrays(path, "w") as out:
        out["v"] = values
        out["big"] = np.resize(values, 5000)
    with outcore.Arrays(path) as run:
        assert run["v"].shape == values.shape
        assert run["v"].dtype == values.dtype.newbyteorder("<")
        np.testing.assert_array_equal(run["v"][...], values)
        np.testing.assert_array_equal(run["big"][...], np.resize(values, 5000))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("tiles", [(), (4, 8, 16)])
def test_keys_read_as_numpy_does(path, order, tiles):
    values = np.arange(10 * 20 * 30).reshape(10, 20, 30)
    with outcore.Arrays(path, "w") as out:
        out.store("u", np.asarray(values, order=order), order=order, tiles=tiles)
        keys = [..., 3, -1, (2, 5), (1, 2, 3), slice(2, 5), (slice(None), slice(None), 5),
                (slice(8, 1, -2), slice(3, 18, 4)), (..., 7), (3, ..., slice(1, 9)),
                (slice(5, 5),), (None, 2), [1, 5, 3], (slice(None), [0, 19], 2),
                (slice(None), np.arange(20) % 3 == 0)]
        for key in keys:
            np.testing.assert_array_equal(out["u"][key], values[key], err_msg=repr(key))
        np.testing.assert_array_equal(np.asarray(out["u"]), values)
        for key in [10, (0, 0, 0, 0), "x", 1.5, (..., ...)]:
            with pytest.raises(IndexError):
                out["u"][key]


def test_boxes_are_written_like_numpy(path):
    right = np.zeros((50, 60))
    with outcore.Arrays(path, "w") as out:
        u = out.alloc("u", right.shape, tiles=(16, 16))
        for key, value in [(slice(10, 20), 1), ((3, 4), 2), ((slice(None), 5), np.arange(50)),
                           ((slice(30, 40), slice(7, 11)), np.ones((10, 4)) * 3)]:
            u[key] = value
            right[key] = value
        with pytest.raises(IndexError):
            u[::2] = 1
        with pytest.raises(ValueError):
            u[0:3] = np.ones((4, 60))
    np.testing.assert_array_equal(outcore.Arrays(path)["u"][...], right)


def test_values_texts_and_attributes(path):
    with outcore.Arrays(path, "w") as out:
        out["step"] = 12
        out["title"] = "größer"
        out["u"] = np.ones(3)
        out["u"].attrs["unit"] = "K"
        out.attrs["code"] = "S3D"
    with outcore.Arrays(path, "a") as run:
        assert run["step"] == 12 and run["title"] == "größer"
        assert dict(run["u"].attrs) == {"unit": "K"} and dict(run.attrs) == {"code": "S3D"}
        run.rename("u", "w")
        del run["step"]
        assert sorted(run) == ["title", "w"] and "u" not in run and len(run) == 2
    assert repr(run).endswith("closed>")


def test_wrong_input_is_one_line(path, tmp_path):
    with pytest.raises(FileNotFoundError):
        outcore.Arrays(path)
    with outcore.Arrays(path, "w") as out:
        out["u"] = np.ones(10)
        with pytest.raises(KeyError):
            out["v"]
        with pytest.raises(TypeError, match="encode"):
            out["names"] = np.array(["a", "bb"])
        with pytest.raises(TypeError, match="objects"):
            out["o"] = np.array([object()])
        with pytest.raises(OSError):
            outcore.Arrays(path, "a")
    with pytest.raises(ValueError):
        outcore.Arrays(path, "x")
    with pytest.raises(ValueError, match="closed"):
        out["u"]
    other = tmp_path / "thesis.txt"
    other.write_text("x" * 10000)
    for mode in "rwa":
        with pytest.raises(OSError, match="no container"):
            outcore.Arrays(other, mode)
    assert other.read_text() == "x" * 10000


def test_processes_write_together(path):
    program = textwrap.dedent("""
        import sys, numpy as np, outcore
        rank = int(sys.argv[2])
        with outcore.Arrays(sys.argv[1], "w", processes=3) as out:
            out.alloc("u", (30, 40))[:, rank * 13:rank * 13 + 14] = rank
    """)
    running = [subprocess.Popen([sys.executable, "-c", program, os.fspath(path), str(rank)])
               for rank in range(3)]
    assert [one.wait(timeout=60) for one in running] == [0, 0, 0]
    u = outcore.Arrays(path)["u"][...]
    assert np.all(u[:, 0:13] == 0) and np.all(u[:, 14:26] == 1) and np.all(u[:, 27:40] == 2)


def test_dask_reads_by_chunks(path):
    da = pytest.importorskip("dask.array")
    with outcore.Arrays(path, "w") as out:
        out["u"] = np.arange(10000.0).reshape(100, 100)
    with outcore.Arrays(path) as run:
        lazy = da.from_array(run["u"], chunks=(30, 50))
        assert float(lazy.sum().compute()) == 9999 * 5000
