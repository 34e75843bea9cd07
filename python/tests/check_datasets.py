"""Containers of named arrays by xarray and dask: views, lazy reading, datasets that are written."""

import gc
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import outcore


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.oca"


@pytest.fixture
def values():
    return np.arange(20 * 30 * 40.0).reshape(20, 30, 40)


@pytest.fixture
def stored(path, values):
    with outcore.Arrays(path, "w") as out:
        out["u"] = values
        out.store("f", np.asfortranarray(values), order="F")
        out.store("t", values, tiles=(5, 16, 16))
        out["none"] = np.zeros((0, 3))
        out["few"] = np.arange(3)
        out["u"].attrs["dimensions"] = "time y x"
        out["u"].attrs["units"] = "K"
    return path


@pytest.fixture
def dataset(values):
    xarray = pytest.importorskip("xarray")
    return xarray.Dataset(
        {"t": (("time", "y", "x"), values, {"units": "K", "range": [0, 2.5], "note": "", "n": 3}),
         "is": (("y", "x"), values[0] > 7), "step": 5, "names": ("s", ["a", "größer", ""]),
         "letters": ("s", np.array([b"a", b"b", b"c"]))},
        {"time": np.datetime64("2024-01-01", "ns") + np.arange(20) * np.timedelta64(6, "h"),
         "x": np.arange(40) * 0.5, "lat": (("y", "x"), values[1])},
        {"title": "a flame", "sizes": [1, 2], "by": "größer"})


# -- views --

def test_a_view_is_the_container_itself(stored, values):
    with outcore.Arrays(stored) as run:
        for name in ("u", "f"):
            view = run[name].view()
            assert type(view) is np.ndarray and not view.flags.writeable
            np.testing.assert_array_equal(view, values)
            for key in [3, (2, 5), (1, 2, 3), slice(2, 15, 4), (..., 7), (slice(9, 2, -3), None),
                        (slice(2, 9), slice(3, 20), slice(5, 35)), slice(5, 5)]:
                part = run[name].view[key]
                np.testing.assert_array_equal(part, values[key], err_msg=repr(key))
                assert isinstance(part, np.ndarray) and not part.flags.writeable
            assert np.shares_memory(view, view[3:])
        assert run["f"].view().flags.f_contiguous and run["u"].view().flags.c_contiguous
        assert run["none"].view().shape == (0, 3)
        assert run["few"].view().tolist() == [0, 1, 2]
        with pytest.raises(ValueError):
            view[0, 0, 0] = 1
        np.testing.assert_array_equal(np.asarray(run["u"], "f4"), values.astype("f4"))
        with pytest.raises(ValueError, match="view"):
            np.asarray(run["u"], copy=False)


def test_a_view_outlives_its_container(stored, values):
    run = outcore.Arrays(stored)
    view = run["u"].view[5:]
    run.close()
    del run
    gc.collect()
    np.testing.assert_array_equal(view, values[5:])
    with outcore.Arrays(stored, "a") as out:
        with pytest.raises(OSError, match="view reads it"):
            out["u"][0] = 1
        out["other"] = 1
    del view
    gc.collect()
    with outcore.Arrays(stored, "a") as out:
        out["u"][0] = 1
        assert out["u"].view()[0, 0, 7] == 1  # of what is being written, too


def test_what_is_no_view_is_refused(stored):
    with outcore.Arrays(stored) as run:
        with pytest.raises(OSError, match="kept in tiles.*load it"):
            run["t"].view()
        with pytest.raises(IndexError, match="loaded"):
            run["u"].view[[1, 2]]
        with pytest.raises(IndexError):
            run["u"].view[20]
        u = run["u"]
    with pytest.raises(ValueError, match="closed"):
        u.view()


def test_views_are_within_the_budget_of_a_runtime(path, small):
    with outcore.Arrays(path, "w") as out:
        out["u"] = np.ones((32, 128, 1024))  # 32 MiB
    with outcore.Arrays(path, runtime=small) as run:
        assert float(run["u"].view().sum()) == 32 * 128 * 1024
        assert small.stats()["read_bytes"] >= 32 << 20
        assert small.stats()["used_bytes_max"] <= 8 << 20


# -- by reference, and dask --

def test_arrays_are_pickled_by_reference(stored, values):
    with outcore.Arrays(stored) as run:
        sent = pickle.dumps((run["u"], run["f"], run))
        assert len(sent) < 2000
        u, f, again = pickle.loads(sent)
        assert u._container is f._container is not run._container
        np.testing.assert_array_equal(u[3], values[3])
        assert again["few"][2] == 2
        again.close()
    np.testing.assert_array_equal(f[3], values[3])  # of a container of its own
    program = ("import pickle, sys; u, f, run = pickle.load(sys.stdin.buffer); "
               "assert u[3, 4, 5] == f[3, 4, 5] and 'u' in run; print(u[3, 4, 5])")
    done = subprocess.run([sys.executable, "-c", program], input=sent, capture_output=True,
                          cwd="/", timeout=60, check=False)
    assert float(done.stdout) == values[3, 4, 5], done.stderr
    with outcore.Arrays(stored, "a") as out, pytest.raises(pickle.PicklingError, match="written"):
        pickle.dumps(out["u"])


def test_dask_reads_by_chunks(stored, values):
    dask = pytest.importorskip("dask")
    import dask.array
    loaded = []
    with outcore.Arrays(stored) as run:
        assert run["t"].chunks == (5, 16, 16) and run["u"].chunks == (20, 30, 40)
        load, u = run["u"]._load, run["u"]
        u._load = lambda offsets, dims: (loaded.append(dims), load(offsets, dims))[1]
        lazy = dask.array.from_array(u, chunks=(7, -1, 20))
        assert all(0 in dims for dims in loaded)
        loaded.clear()
        assert float(lazy[0].sum().compute(scheduler="synchronous")) == values[0].sum()
        assert all(dims[0] == 1 for dims in loaded), loaded
        with dask.config.set({"array.chunk-size": "20KiB"}):
            for chunk in dask.array.from_array(run["t"]).chunks:  # whole tiles
                assert all(n % 5 == 0 or n % 16 == 0 for n in chunk[:-1])
        tokens = {dask.base.tokenize(run[name]) for name in ("u", "u", "f", "t")}
        assert len(tokens) == 3
        one = dask.array.from_array(run["u"], chunks=(5, -1, -1))
        with dask.config.set(scheduler="processes", num_workers=2):
            assert float((one + 1).sum().compute()) == (values + 1).sum()
    with outcore.Arrays(stored, "a") as out:
        assert dask.base.tokenize(out["u"]) not in tokens


def test_chunks_are_runs_of_large_arrays(path):
    with outcore.Arrays(path, "w") as out:
        for order in "C", "F":
            out.alloc(order, (2, 1 << 10, 1 << 14), "f8", order=order)
        assert out["C"].chunks == (1, 512, 1 << 14)
        assert out["F"].chunks == (2, 1 << 10, 1 << 12)
        out.abort()


# -- xarray --

def test_a_dataset_comes_back(dataset, path):
    xarray = pytest.importorskip("xarray")
    outcore.store_dataset(dataset, path, encoding={"t": {"tiles": (1, 16, 16)}})
    with xarray.open_dataset(path) as back:
        assert not back.t.variable._in_memory
        assert back.t.encoding["preferred_chunks"] == {"time": 1, "y": 16, "x": 16}
        xarray.testing.assert_identical(back.load(), dataset)
    with outcore.Arrays(path) as run:  # and other programs understand it
        assert run["t"].attrs["dimensions"] == "time y x" and run["t"].attrs["units"] == "K"
        assert run["t"].attrs["coordinates"] == "lat" and "_FillValue" not in run["t"].attrs
        assert "since 2024-01-01" in run["time"].attrs["units"]
        assert run.attrs["title"] == "a flame" and run["step"] == 5
    with xarray.open_dataset(path, chunks={}) as lazy:
        assert lazy.t.chunks[0] == (1,) * 20 and lazy.t.chunks[1] == (16, 14)
        again = path.with_name("again")
        outcore.store_dataset(lazy, again)
    with xarray.open_dataset(again) as back:  # known by what is in it
        xarray.testing.assert_identical(back.load(), dataset)
    with outcore.Arrays(again) as run:
        assert run["t"].tiles == (1, 16, 16)


@pytest.mark.parametrize("chunks", [None, {"time": 7}])
def test_a_dataset_is_compressed(dataset, path, chunks):
    xarray = pytest.importorskip("xarray")
    if chunks:
        pytest.importorskip("dask.array")
        dataset = dataset.chunk(chunks)
    encoding = {"t": {"compress": "zstd:5", "tiles": (4, 16, 16)}, "lat": {"compress": "lz4"},
                "step": {"compress": "zstd"}, "names": {"compress": "zstd"}}
    for _ in range(2):  # the second in place of the first
        outcore.store_dataset(dataset, path, "a", encoding=encoding)
    with xarray.open_dataset(path) as back:
        assert back.t.encoding["compress"] == "zstd:5" and back.lat.encoding["compress"] == "lz4"
        assert back.t.encoding["tiles"] == (4, 16, 16) and "compress" not in back.x.encoding
        xarray.testing.assert_identical(back.load(), dataset.compute())
        again = path.with_name("again.oca")
        outcore.store_dataset(back, again)  # stays so
    with outcore.Arrays(again) as run:
        assert run["t"].compress == "zstd:5" and run["lat"].compress == "lz4"
        np.testing.assert_array_equal(run["t"][...], dataset.t.values)


def test_xarray_reads_as_it_does_elsewhere(dataset, path):
    xarray = pytest.importorskip("xarray")
    outcore.store_dataset(dataset, path)
    with xarray.open_dataset(path, engine="outcore") as back:
        for key in [{"time": 1, "x": [3, 1, 39]}, {"y": slice(1, 30, 4), "time": -1},
                    {"x": 5, "y": [1, 2], "time": [0, 2]}, {"time": slice(None, None, -3)},
                    {"x": xarray.DataArray([1, 2], dims="p"),
                     "y": xarray.DataArray([0, 9], dims="p")}, {"y": []}]:
            xarray.testing.assert_equal(back.t.isel(key), dataset.t.isel(key))
        day = back.t.sel(time="2024-01-03").mean("time")
        xarray.testing.assert_allclose(day, dataset.t.sel(time="2024-01-03").mean("time"))
        sent = pickle.dumps(back)
        assert len(sent) < 50_000
    again = pickle.loads(sent)
    assert float(again.t[1, 2, 3]) == float(dataset.t[1, 2, 3])
    raw = xarray.open_dataset(path, decode_cf=False)
    assert raw.time.dtype == "i8" and raw["is"].dtype == bool
    raw.close()


def test_packed_numbers_are_unpacked(dataset, path):
    xarray = pytest.importorskip("xarray")
    packed = {"dtype": "i2", "scale_factor": 0.5, "_FillValue": -1}
    outcore.store_dataset(dataset[["t"]].where(dataset.t != 7), path, encoding={"t": packed})
    with xarray.open_dataset(path) as back:
        assert np.isnan(float(back.t[0, 0, 7])) and float(back.t[0, 0, 8]) == 8
    with outcore.Arrays(path) as run:
        assert run["t"].dtype == "i2" and run["t"].attrs["scale_factor"] == "0.5"
    with outcore.Arrays(path, "w") as out:  # of a program that has texts only
        out["u"] = np.arange(4, dtype="i2")
        for key, text in {"_FillValue": "2", "scale_factor": "0.25", "add_offset": "1e0",
                          "missing_value": "+2"}.items():
            out["u"].attrs[key] = text
    with xarray.open_dataset(path) as back:
        np.testing.assert_array_equal(back.u, [1, 1.25, np.nan, 1.75])


def test_containers_of_other_programs_have_names_for_their_axes(stored):
    xarray = pytest.importorskip("xarray")
    with outcore.Arrays(stored, "a") as out:
        out["title"] = "a flame"
        out["square"] = np.ones((30, 30))
    with xarray.open_dataset(stored, drop_variables="few") as ds:
        assert ds.u.dims == ("time", "y", "x") and ds.u.units == "K" and str(ds.title.values) == \
            "a flame"
        assert ds.t.dims == ds.f.dims == ("phony_20", "phony_30", "phony_40") and "few" not in ds
        assert ds.square.dims == ("phony_30", "phony_30_2")
    with xarray.open_dataset(stored, dims={"f": ("time", "y", "x")}) as ds:
        assert float((ds.u - ds.f).sum()) == 0
    with outcore.Arrays(stored) as run:
        with xarray.open_dataset(run, engine="outcore", chunks={}) as ds:
            assert float(ds.u[3].mean()) == run["u"][3].mean()
        assert "u" in run  # who opens it closes it
    for options, error in [({"dims": {"f": ("time",)}}, ValueError), ({"shape": (3,)}, TypeError),
                           ({"dims": ("a",)}, TypeError), ({"dims": {"g": ("a",)}}, ValueError)]:
        with pytest.raises(error):
            xarray.open_dataset(stored, **options)
    with outcore.Arrays(stored, "a") as out:  # nothing has stayed open
        out["u"][0] = 1


def test_what_cannot_be_kept_is_refused_before_anything_is_written(dataset, path):
    for wrong, error in [(dataset.rename(x="x y"), ValueError),
                         (dataset.assign_attrs(a=object()), TypeError),
                         (dataset.assign_attrs(dimensions="x"), ValueError),
                         (dataset.assign(o=("s", np.array([1, "a", None], object))), TypeError)]:
        with pytest.raises(error):
            outcore.store_dataset(wrong, path)
    for encoding in [{"t": {"zlib": True}}, {"v": {}}, {"t": {"compress": "zip"}},
                     {"t": {"compress": "zstd:20"}}, {"t": {"tiles": (1, 2)}},
                     {"t": {"tiles": (1, 0, 2)}}]:
        with pytest.raises(ValueError, match="encoding"):
            outcore.store_dataset(dataset, path, encoding=encoding)
    assert not os.path.exists(path)


def test_what_fails_on_the_way_leaves_what_was_there(dataset, path):
    pytest.importorskip("dask.array")
    outcore.store_dataset(dataset[["step"]], path)

    def fail(block):
        raise RuntimeError("a cell is negative")

    bad = dataset[["t"]].chunk(time=5)
    bad["t"] = bad.t.copy(data=bad.t.data.map_blocks(fail, meta=np.empty((0, 0, 0))))
    with pytest.raises(RuntimeError, match="negative"):
        outcore.store_dataset(bad, path, "a")
    with outcore.Arrays(path) as run:
        assert list(run) == ["step"]
    with outcore.Arrays(path, "a") as out:
        outcore.store_dataset(dataset[["t"]].chunk(time=7), out)
        outcore.store_dataset(dataset[["t"]].chunk(time=3), out)  # in place of it
        out["more"] = 1
    with outcore.Arrays(path) as run:
        assert sorted(run) == ["lat", "more", "step", "t", "time", "x"]
        np.testing.assert_array_equal(run["t"][...], dataset.t.values)


def test_outcore_needs_neither_xarray_nor_dask():
    program = ("import sys; sys.modules['xarray'] = sys.modules['dask'] = None; import outcore; "
               "outcore.store_dataset, outcore.Arrays")
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
