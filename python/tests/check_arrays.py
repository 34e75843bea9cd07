"""Containers of named arrays: mappings whose arrays are read and written by parts."""

import errno
import importlib.util
import os
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import outcore
from outcore import boxes


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
        out["one"] = values[1, 2, 3]
    with outcore.Arrays(path) as run:
        assert run["v"].shape == values.shape
        assert run["v"].dtype == values.dtype.newbyteorder("<")
        np.testing.assert_array_equal(run["v"][...], values)
        assert run["v"][1, 2, 3] == values[1, 2, 3] == run["one"]
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


def test_tiles_are_compressed(path):
    values = np.arange(30 * 40 * 50.0).reshape(30, 40, 50)
    record = np.zeros(300, [("x", "f4"), ("n", "i8")])
    with outcore.Arrays(path, "w") as out:
        u = out.alloc("u", values.shape, compress="zstd:7", tiles=(16, 16, 16))
        u[:, 3:20] = values[:, 3:20]
        u[:, 20:] = values[:, 20:]  # shares tiles with it
        u[:, :3] = values[:, :3]
        out.store("f", np.asfortranarray(values), compress="lz4")
        out.store("record", record, compress="zstd")
        out.store("text", "größer " * 1000, compress="zstd")
        out.store("small", np.arange(3), compress="zstd")
        for i, one in enumerate([7, "a flame", b"x" * 600, np.zeros((0, 3000)), np.zeros(0, "S9")]):
            out.store(f"one{i}", one, compress="zstd")
        out["plain"] = values
        assert u.compress == "zstd:7" and u.tiles == u.chunks == (16, 16, 16)
        for wrong in ("zip", "zstd:20", "zstd:", "ZSTD"):
            with pytest.raises(ValueError, match="write none, lz4, zstd"):
                out.store("w", values, compress=wrong)
            with pytest.raises(ValueError):
                out.alloc("w", 9, compress=wrong)
    with outcore.Arrays(path) as run:
        for name in ("u", "f"):
            np.testing.assert_array_equal(run[name][...], values)
            np.testing.assert_array_equal(run[name][3:29:5, 7, ::-2], values[3:29:5, 7, ::-2])
        assert run["f"].order == "F" and run["f"].compress == "lz4" and run["f"].tiles
        assert run["record"].dtype == record.dtype and run["record"].compress == "zstd:3"
        assert run["plain"].compress is None and run["small"].compress is None
        assert run["text"] == "größer " * 1000 and run["small"][2] == 2 and "w" not in run
        assert run["one0"] == 7 and run["one1"] == "a flame" and run["one2"] == b"x" * 600
        assert run["one3"].shape == (0, 3000) and run["one4"].shape == (0,)
        with pytest.raises(OSError, match="load it"):
            run["u"].view()
    assert os.stat(path).st_blocks * 512 < os.stat(path).st_size


def test_what_is_compressed_is_replaced_not_changed(path):
    with outcore.Arrays(path, "w") as out:
        out.store("u", np.arange(1000.0), compress="lz4")
        out.store("v", np.arange(1000.0), compress="lz4")
    with outcore.Arrays(path, "a") as out:
        with pytest.raises(OSError, match="it is compressed and finished"):
            out["u"][3] = 1
        with pytest.raises(FileExistsError):
            out.alloc("u", 50)
        out.alloc("u", 50, may_replace=True, compress="zstd", tiles=(100,))[7:9] = 7
        out.store("v", np.ones(2000), compress="zstd")
    with outcore.Arrays(path) as run:
        assert run["u"].shape == (50,) and run["u"][...].sum() == 14
        assert run["v"].shape == (2000,) and run["v"].compress == "zstd:3" and run["v"][1999] == 1


@pytest.mark.parametrize("order", ["C", "F"])
def test_large_boxes_are_read_by_pieces(path, order, monkeypatch):
    monkeypatch.setattr(boxes, "_PIECE_BYTES", 3000)
    monkeypatch.setattr(boxes, "_GAP_BYTES", 500)
    values = np.arange(40 * 9 * 11).reshape(40, 9, 11)
    loaded = []
    load = outcore.StoredArray._load
    monkeypatch.setattr(outcore.StoredArray, "_load", lambda self, offsets, dims: (
        loaded.append(int(np.prod(dims))), load(self, offsets, dims))[1])
    with outcore.Arrays(path, "w") as out:
        out.store("u", np.asarray(values, order=order), order=order)
        for key in [slice(None, None, 2), slice(30, 2, -7), [5, 39, 0, 5], [[1, 2], [3, 4]],
                    (slice(None), slice(None, None, -3)), (slice(None), [8, 1, 1], slice(3, 9, 2)),
                    (slice(None), 4, slice(None, None, 5)), (3, slice(None), [2, 0]),
                    (None, slice(1, 39, 3), ..., slice(None, None, -1)), ([0, 20], 3),
                    (slice(None), slice(None), np.arange(11) % 4 == 0), ([1, 2], [3, 4]), []]:
            np.testing.assert_array_equal(out["u"][key], values[key], err_msg=repr(key))
        loaded.clear()
        picked = (0, 20, 39) if order == "C" else (0, 5, 10)
        key = list(picked) if order == "C" else (..., list(picked))
        np.testing.assert_array_equal(out["u"][key], values[key])
        assert loaded == [9 * 11] * 3 if order == "C" else [9 * 40] * 3


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


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("value", [
    300, -1, "12", 1.5, [[1], [2], [3]], np.arange(4.0), np.full((1, 1, 3, 4), 5), 2 + 1j,
    np.array([b"1", b"2", b"3", b"4"]), "seven", np.ones((2, 4)), np.arange(12.0).reshape(4, 3).T])
def test_what_is_written_means_what_it_means_to_numpy(path, value, order):
    there = np.zeros((3, 4), "u1", order)
    with outcore.Arrays(path, "w") as out:
        out["v"] = there
        try:
            there[...] = value
        except (OverflowError, ValueError, TypeError) as error:
            with pytest.raises(type(error)):
                out["v"][...] = value
        else:
            out["v"][...] = value
        np.testing.assert_array_equal(out["v"][...], there)


def test_one_element_takes_no_array_with_axes(path):
    with outcore.Arrays(path, "w") as out:
        out["v"] = np.zeros((2, 3))
        for value in [7], np.ones((1, 1)), np.ones(1):
            there = np.zeros((2, 3))
            try:
                there[0, 1] = value
            except (TypeError, ValueError) as error:
                with pytest.raises(type(error)):
                    out["v"][0, 1] = value
                assert out["v"][0, 1] == 0
            else:
                out["v"][0, 1] = value
                assert out["v"][0, 1] == there[0, 1]
                out["v"][0, 1] = 0


@pytest.mark.parametrize("dtype", [
    np.dtype([("a", "i1"), ("b", "f8")], align=True),
    np.dtype([("a", "f4", (3,)), ("n", [("x", "i2"), ("when", "M8[ms]")])]),
    np.dtype({"names": ["b", "a"], "formats": ["f8", "i4"], "offsets": [8, 0]}),
    np.dtype({"names": ["x"], "formats": [[("f", "c8")]], "offsets": [4], "itemsize": 24}),
    np.dtype([(("a title", "t"), ">f8"), ("text", "U3")])])
def test_records_keep_their_fields(path, dtype):
    values = np.zeros((50, 50), dtype)
    values[dtype.names[0]][7] = 1
    with outcore.Arrays(path, "w") as out:
        out["whole"] = values
        out.alloc("box", values.shape, dtype)[5:9] = values[5:9]
        out["changed"] = values
        out["changed"] = np.zeros(values.shape, f"V{dtype.itemsize}")
    with outcore.Arrays(path) as run:
        for name in ("whole", "box"):
            assert run[name].dtype == dtype.newbyteorder("<") and not dict(run[name].attrs)
            np.testing.assert_array_equal(run[name][...], values)
            np.testing.assert_array_equal(run[name].view(), values)
        assert run["changed"].dtype == f"V{dtype.itemsize}"


def test_a_note_that_does_not_fit_is_passed_over(path):
    notes = ["[('x', 'f4')]", "[('x'", "O", "[1]", "{}", "M8[", "[" * 500]
    with outcore.Arrays(path, "w") as out:
        for i, note in enumerate(notes):
            out[f"u{i}"] = np.arange(3)
            out._core.set_attribute(f"u{i}", "numpy", note)
    with outcore.Arrays(path) as run:
        for i in range(len(notes)):
            assert run[f"u{i}"].dtype == "i8" and run[f"u{i}"][2] == 2


def test_what_an_exception_interrupts_is_absent(path, capfd):
    with outcore.Arrays(path, "w") as out:
        out["before"] = np.ones(10_000)
    with pytest.raises(RuntimeError), outcore.Arrays(path, "a") as out:
        out["u"] = np.ones(10_000)
        out["before"] = 2
        raise RuntimeError
    assert not out._core.is_open
    with pytest.raises(RuntimeError), outcore.Arrays(path) as run:
        raise RuntimeError
    out = outcore.Arrays(path, "a")
    out["v"] = 1
    out.abort()
    out.close()
    with outcore.Arrays(path) as run:
        assert list(run) == ["before"] and run["before"].shape == (10_000,)
    assert capfd.readouterr() == ("", "")


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
        with pytest.raises(OSError, match="not a container"):
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


def run_mpi(program, *arguments, ranks=3):
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun is not installed: apt-get install openmpi-bin libopenmpi-dev")
    if importlib.util.find_spec("mpi4py") is None:
        pytest.skip("mpi4py is not installed: pip install mpi4py")
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                   "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
                   "OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMPI_MCA_plm": "isolated"}
    return subprocess.run(["mpirun", "-n", str(ranks), sys.executable, "-c",
                           textwrap.dedent(program), *map(os.fspath, arguments)],
                          capture_output=True, text=True, timeout=120, check=False,
                          env=environment)


def test_ranks_of_mpi_write_together(path):
    done = run_mpi("""
        import sys, numpy as np, outcore
        from mpi4py import MPI
        comm = MPI.COMM_WORLD
        assert comm.size == 3
        with outcore.Arrays(sys.argv[1], "w", comm=comm) as out:
            u = out.alloc("u", (30, 40))
            u[:, comm.rank * 13:comm.rank * 13 + 14] = comm.rank
        with outcore.Arrays(sys.argv[1], comm=comm) as run:  # when one has closed, all have
            assert run["u"][7, ::13].tolist() == [0, run["u"][7, 13], run["u"][7, 26], 2]
    """, path)
    assert done.returncode == 0, done.stderr
    u = outcore.Arrays(path)["u"][...]
    assert np.all(u[:, 0:13] == 0) and np.all(u[:, 14:26] == 1) and np.all(u[:, 27:40] == 2)


def test_all_ranks_of_mpi_hear_of_an_exception_in_one(path):
    with outcore.Arrays(path, "w") as out:
        out["before"] = 1
    done = run_mpi("""
        import os, sys, outcore
        from mpi4py import MPI
        rank = MPI.COMM_WORLD.rank
        try:
            with outcore.Arrays(sys.argv[1], "a", comm=MPI.COMM_WORLD) as out:
                out.alloc("u", (30, 40))[rank * 10:rank * 10 + 10] = 1
                if rank == 1:
                    raise KeyError("density")
        except (KeyError, OSError) as error:
            told = f"{rank} {type(error).__name__} {'absent' in str(error)};"
            os.write(1, told.encode())
    """, path)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split(";")) == ["", "0 OSError True", "1 KeyError False",
                                              "2 OSError True"]
    assert list(outcore.Arrays(path)) == ["before"]


def test_all_ranks_of_mpi_hear_when_one_cannot_open(path, tmp_path):
    done = run_mpi("""
        import os, sys, outcore
        from mpi4py import MPI
        rank = MPI.COMM_WORLD.rank
        try:
            outcore.Arrays(sys.argv[1 + (rank == 2)], "w", comm=MPI.COMM_WORLD)
        except OSError as error:
            os.write(1, f"{rank};".encode())  # at once: the launcher mixes lines
    """, path, tmp_path / "nowhere" / "run.oca")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split(";")) == ["", "0", "1", "2"]


def test_a_lost_page_of_the_catalog_is_no_empty_container(path):
    with outcore.Arrays(path, "w") as out:
        out["u"] = np.arange(300_000.0)
    with open(path, "r+b") as file:
        file.seek(8192)
        file.write(bytes(4096))
        file.seek(0)
        before = file.read()
    for mode in "ra":
        with pytest.raises(OSError, match="is damaged: .*go back to a copy of it") as caught:
            outcore.Arrays(path, mode)
        assert caught.value.errno == errno.EIO
    with open(path, "rb") as file:
        assert file.read() == before


def test_damage_is_called_damage(path):
    with outcore.Arrays(path, "w") as out:
        out["u"] = np.arange(300_000.0)
        out["v"] = np.arange(300_000)
    with outcore.Arrays(path) as run:
        assert run.verify() == []
        with open(path, "r+b") as file:
            at = file.read().find(np.arange(1000.0).tobytes()) + (1 << 20) + 3
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ 1]))
        with pytest.raises(OSError, match="'u' is damaged: bytes 1048576 to 2097151, at") as caught:
            run.verify()
        assert caught.value.errno == errno.EIO
        assert run.verify("v") == []
        with pytest.raises(OSError, match="no array 'w'"):
            run.verify("w")
