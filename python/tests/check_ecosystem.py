"""NumPy's neighbours take an array without a copy: pandas, Arrow, SciPy, dask, xarray, zarr."""

import gc
import os
import pickle

import numpy as np
import pytest

import outcore


@pytest.fixture
def table(tmp_path):
    name = str(tmp_path / "t.npy")
    np.save(name, np.arange(200_000, dtype="f8").reshape(2000, 100))
    with outcore.open(name, "r+") as a:
        yield a
        gc.collect()


def address(array):
    return np.asarray(array).__array_interface__["data"][0]


def test_pandas_takes_it(table):
    import pandas
    column = np.asarray(table).T[0]
    frame = pandas.DataFrame(np.asarray(table), copy=False)
    assert np.shares_memory(frame.to_numpy(), table[:])
    assert float(pandas.Series(column, copy=False).sum()) == float(table[:, 0].sum())
    assert float(frame[3].mean()) == float(table[:, 3].mean())
    del frame, column


def test_arrow_takes_it(table):
    import pyarrow
    buffer = pyarrow.py_buffer(table)
    assert buffer.address == address(table) and buffer.size == table.nbytes
    column = pyarrow.array(table[:].reshape(-1))
    assert column.buffers()[1].address == address(table)
    with pytest.raises(BufferError):
        table.close()
    import pyarrow.compute
    assert pyarrow.compute.sum(column).as_py() == float(table.sum())
    del buffer, column


def test_scipy_takes_it(table):
    import scipy.linalg
    import scipy.sparse
    import scipy.spatial.distance
    assert np.allclose(scipy.linalg.norm(table), np.linalg.norm(table.read()))
    assert scipy.sparse.csr_array(table[:10]).nnz == 999
    assert scipy.spatial.distance.cdist(table[:3], table[:2]).shape == (3, 2)
    data = np.asarray(table).reshape(-1)
    count = np.arange(len(data) + 1)
    matrix = scipy.sparse.csr_array((data, count[:-1], count), copy=False)
    assert np.shares_memory(matrix.data, data)
    del data, matrix


def test_torch_takes_it(table):
    torch = pytest.importorskip("torch", reason="torch is not installed here (it is large)")
    tensor = torch.from_dlpack(table)
    assert tensor.data_ptr() == address(table)
    assert torch.from_numpy(np.asarray(table)).data_ptr() == address(table)
    del tensor


def test_numpy_takes_it_by_dlpack(table):
    assert address(np.from_dlpack(table)) == address(table)
    assert table.__dlpack_device__() == (1, 0)


def anonymous_bytes():
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("RssAnon"))


def test_dask_copies_nothing(tmp_path):
    import dask.array
    name = tmp_path / "d.dat"
    with outcore.open(name, "w", shape=(16384, 1024), dtype="f8", budget="16MiB",
                      frames="shared") as a:  # 128 MiB; shared frames are not anonymous memory
        a[::1000] = 1
        before = anonymous_bytes()
        lazy = a.to_dask(chunks=(1024, -1))
        assert lazy.numblocks == (16, 1)
        with dask.config.set(scheduler="threads", num_workers=2):
            assert float(lazy.sum().compute()) == 17 * 1024
        assert anonymous_bytes() - before < 32 << 20
        direct = dask.array.from_array(a, chunks=(1024, -1))  # not even so
        assert anonymous_bytes() - before < 32 << 20
        del lazy, direct
        gc.collect()


def test_dask_takes_arrays_whose_store_is_no_file(tmp_path):
    import dask.array
    folder = f"sparse:{tmp_path}/parts"
    with outcore.open(folder, "w+", 1000, "f8") as a:
        a[...] = np.arange(1000)
    with outcore.open(folder, dtype="f8") as a, outcore.open(folder, dtype="f8") as b:
        assert float(a.to_dask().sum().compute(scheduler="threads")) == 499500
        assert float(dask.array.from_array(a).sum().compute(scheduler="threads")) == 499500
        tokens = [dask.base.tokenize(one) for one in (a, a, b)]
        assert tokens[0] == tokens[1] != tokens[2]  # the store's content may have changed between
        assert dask.base.tokenize(a[3:7]) == dask.base.tokenize(a[3:7])


def test_dask_arrays_go_to_other_processes_by_reference(table):
    import dask
    lazy = table.to_dask(chunks=(500, -1))
    assert len(pickle.dumps(lazy)) < 20_000
    with dask.config.set(scheduler="processes", num_workers=2):
        assert float((lazy + 1).sum().compute()) == float(table.sum()) + table.size
    assert table.to_dask().chunks[1] == (100,)


def test_dask_tokens_tell_data_apart(tmp_path):
    from dask.base import tokenize
    name = str(tmp_path / "t.dat")
    np.arange(1000.0).tofile(name)
    with outcore.open(name, dtype="f8") as a, outcore.open(name, dtype="f8") as b:
        assert tokenize(a) == tokenize(b) == tokenize(pickle.loads(pickle.dumps(a)))
        assert tokenize(a[3:]) == tokenize(b[3:]) != tokenize(b[4:])
        token = tokenize(a)
    os.utime(name, ns=(1, 1))
    with outcore.open(name, dtype="f8") as a:
        assert tokenize(a) != token
    with outcore.open(name, "r+", dtype="f8") as a, outcore.open(name, "r+", dtype="f8") as b:
        assert tokenize(a) == tokenize(a) != tokenize(b)
        part = a[3:]
        token = tokenize(part)
        part[0] = -1
        assert tokenize(part) != token
        del part


def test_xarray_opens_lazily(table):
    xarray = pytest.importorskip("xarray")
    assert "outcore" in xarray.backends.list_engines()
    with xarray.open_dataset(table.filename, engine="outcore", name="t", dims=("time", "x"),
                             coords={"time": np.arange(2000)}, budget="8MiB") as ds:
        assert ds.t.dims == ("time", "x") and ds.t.shape == (2000, 100)
        assert not ds.t.variable._in_memory
        assert float(ds.t.sel(time=1999)[99]) == 199_999
        assert float(ds.t.isel(x=3).mean()) == float(table[:, 3].mean())
        assert ds.t.isel(time=[3, 1999, 5] * 9).values[1, 0] == 199_900
        assert np.array_equal(ds.t[10:20, [1, 5]], table.read()[10:20, [1, 5]])
        lazy = pickle.loads(pickle.dumps(ds.drop_vars("time")))
        assert len(pickle.dumps(ds.drop_vars("time"))) < 10_000
        assert float(lazy.t[5, 5]) == 505
        lazy.close()
        chunked = ds.chunk(time=500)
        assert float(chunked.t.sum()) == float(table.sum())
        del chunked
    with xarray.open_dataset(table.filename) as ds:  # .npy is known by its name
        assert ds.data.dims == ("dim_0", "dim_1")


def test_zarr_reads_through_it(tmp_path):
    zarr = pytest.importorskip("zarr")
    from outcore.zarr import OutcoreStore
    with outcore.Runtime(budget="16MiB") as runtime:
        store = OutcoreStore(tmp_path / "z", runtime=runtime, min_bytes="16KiB")
        plain = np.random.default_rng(0).standard_normal((1000, 500))
        z = zarr.create_array(store, name="a", shape=plain.shape, dtype="f8", chunks=(100, 100),
                              shards=(500, 500))
        z[:] = plain
        assert np.array_equal(z[:], plain)
        assert np.array_equal(z[250:300, ::7], plain[250:300, ::7])
        assert np.array_equal(z.oindex[[1, 999, 3], :], plain[[1, 999, 3]])
        assert runtime.stats()["read_bytes"] > 0
        before = runtime.stats()["read_bytes"]
        assert np.array_equal(z[:100], plain[:100])
        assert runtime.stats()["read_bytes"] == before  # it was in memory
        z[:] = plain + 1  # each shard is a new file
        assert np.array_equal(z[:], plain + 1)
        other = pickle.loads(pickle.dumps(store))
        assert other == store and np.array_equal(zarr.open_array(other, path="a")[:], plain + 1)
        local = zarr.open_array(zarr.storage.LocalStore(tmp_path / "z"), path="a", mode="r")
        assert np.array_equal(local[:], plain + 1)
        read_only = store.with_read_only(True)
        with pytest.raises(ValueError):
            zarr.open_array(read_only, path="a", mode="r+")[0] = 1
        for s in (store, other, read_only):
            s.close()
        del z
        gc.collect()


def test_the_command_and_the_library_are_in_the_wheel():
    import shutil
    import subprocess
    import sys
    command = shutil.which("outcore", path=os.path.dirname(sys.executable))
    if command is None:
        pytest.skip("the package is not installed, only imported")
    done = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.stdout.split()[-1:] == [outcore.__version__], done.stderr
    library = outcore.preload_library()
    assert library is None or os.access(library, os.R_OK)
    if library is not None:  # the command finds it
        run = [command, "run", "--quiet", "--", sys.executable, "-c", "print(6 * 7)"]
        done = subprocess.run(run, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stdout) == (0, "42\n"), done.stderr
    assert os.path.exists(os.path.join(os.path.dirname(outcore.__file__), "py.typed"))
