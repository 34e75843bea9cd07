"""outcore arrays export and import, against what NumPy, h5py, netCDF4 and zarr read and write."""

import itertools
import os
import pathlib
import subprocess
import sys

import h5py
import netCDF4
import numpy as np
import pytest
import zarr


def run(*words, status=0):
    command = os.environ.get("OUTCORE_COMMAND")
    start = [command] if command else [sys.executable, "-m", "_outcore_command"]
    done = subprocess.run([*start, "arrays", *map(str, words)], capture_output=True, text=True,
                          check=False)
    assert done.returncode == status, done.stderr
    assert status == 0 or done.stderr.count("\n") == 1, done.stderr
    return done.stdout + done.stderr


def values(dtype, shape=(7, 5)):
    count = int(np.prod(shape))
    if np.dtype(dtype).kind == "S":
        return np.array([f"w{i}".encode() for i in range(count)], dtype).reshape(shape)
    if np.dtype(dtype).kind == "b":
        return (np.arange(count) % 3 == 0).reshape(shape)
    if np.dtype(dtype).kind == "V":
        made = np.zeros(count, dtype)
        made["x"] = np.arange(count)
        made["n"]["k"][:, 1] = np.arange(count) * 2
        return made.reshape(shape)
    if np.dtype(dtype).kind == "c":
        return (np.arange(count) - 1.5j * np.arange(count)).astype(dtype).reshape(shape)
    return (np.arange(count) * 3 - 7 * (np.dtype(dtype).kind != "u")).astype(dtype).reshape(shape)


RECORD = [("x", "<f4"), ("n", [("k", "<i2", (3,))])]
NUMBERS = ["f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", "S7"]
KINDS = [*NUMBERS, "f2", "c8", "c16"]


def load(path, name):
    """The array as its users' package reads it."""
    if path.suffix == ".npy":
        return np.load(path)
    if path.suffix == ".npz":
        with np.load(path) as file:
            return file[name]
    if path.suffix == ".h5":
        with h5py.File(path) as file:
            return file[name][()]
    if path.suffix == ".zarr":
        return zarr.open_group(path, mode="r")[name][...]
    with netCDF4.Dataset(path) as file:
        variable = file[name]
        variable.set_auto_maskandscale(False)
        variable.set_auto_chartostring(False)
        read = variable[...]
        if variable.dtype == "S1":
            return netCDF4.chartostring(read, encoding="ascii").astype("S7")
        return read.astype("?") if "dtype" in variable.ncattrs() else read


SHAPES = [(7, 5), (), (9,), (3, 4, 5), (0, 3)]


def check_read(path, name, array):
    read = load(path, name)
    assert read.shape == array.shape and (read == array).all(), (name, array.dtype, array.shape)
    if path.suffix != ".nc" and array.shape != ():  # a scalar of bytes is as long as it is
        assert read.dtype == array.dtype, (read.dtype, array.dtype)


@pytest.mark.parametrize("ending", [".npz", ".h5", ".nc", ".zarr"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_each_type_goes_there_and_back(tmp_path, ending, order):
    kinds = itertools.product(NUMBERS if ending == ".nc" else KINDS, SHAPES)
    arrays = {f"a{i}": np.asarray(values(dtype, shape), order=order)
              for i, (dtype, shape) in enumerate(kinds)}
    there = tmp_path / f"a{ending}"
    np.savez(tmp_path / "in.npz", **arrays)
    run("import", tmp_path / "in.npz", "--to", tmp_path / "one.oca")
    run("export", tmp_path / "one.oca", "--to", there)
    run("import", there, "--to", tmp_path / "two.oca")
    run("export", tmp_path / "two.oca", "--to", tmp_path / "back.npz")
    with np.load(tmp_path / "back.npz") as back:
        assert sorted(back) == sorted(arrays)
        for name, array in arrays.items():
            check_read(there, name, array)
            assert back[name].dtype == array.dtype and back[name].shape == array.shape
            assert (back[name] == array).all(), (name, array.dtype, array.shape)
    assert not [p for p in os.listdir(tmp_path) if p.endswith(".part")]


@pytest.mark.parametrize("order", ["C", "F"])
def test_each_type_is_an_npy(tmp_path, order):
    there = tmp_path / "a.npy"
    for dtype, shape in itertools.product(KINDS, SHAPES[:2]):
        array = np.asarray(values(dtype, shape), order=order)
        np.save(there, array)
        run("import", there, "--to", tmp_path / "one.oca", "--replace")
        run("export", tmp_path / "one.oca", "a", "--to", there, "--replace")
        check_read(there, "a", array)


@pytest.mark.parametrize("ending", [".npy", ".npz", ".h5"])
def test_records_and_times(tmp_path, ending):
    for array in values(RECORD), np.arange(5).astype("M8[ms]"), np.arange(3).astype("m8[D]"):
        np.save(tmp_path / "a.npy", array)
        run("import", tmp_path / "a.npy", "--to", tmp_path / "one.oca", "--replace")
        run("export", tmp_path / "one.oca", "--to", tmp_path / f"b{ending}", "--replace")
        run("import", tmp_path / f"b{ending}", "--to", tmp_path / "two.oca", "--replace")
        name = "b" if ending == ".npy" else "a"
        run("export", tmp_path / "two.oca", name, "--to", tmp_path / "back.npy", "--replace")
        back = np.load(tmp_path / "back.npy")
        assert back.dtype == array.dtype and (back == array).all()


def test_what_numpy_writes(tmp_path):
    big = values(">f8")
    packed = np.arange(100000.0).reshape(100, 1000)
    np.savez_compressed(tmp_path / "in.npz", big=big, packed=packed, fortran=packed.T,
                        text=np.array("Grüße, 𝛑"), old=big.astype(">c16"))
    run("import", tmp_path / "in.npz", "--to", tmp_path / "run.oca")
    run("export", tmp_path / "run.oca", "--to", tmp_path / "out.npz")
    with np.load(tmp_path / "in.npz") as given, np.load(tmp_path / "out.npz") as found:
        assert sorted(given) == sorted(found)
        for name in given:
            assert (given[name] == found[name]).all(), name
        assert found["fortran"].flags.f_contiguous


def test_more_than_a_piece(tmp_path):
    wide = np.random.default_rng(1).random((150, 70000))  # 80 MiB: more than one piece
    np.save(tmp_path / "wide.npy", wide)
    run("import", tmp_path / "wide.npy", "--to", tmp_path / "run.oca")
    for ending in ".npy", ".npz", ".h5", ".nc", ".zarr":
        run("export", tmp_path / "run.oca", "wide", "--to", tmp_path / f"out{ending}")
        assert (load(tmp_path / f"out{ending}", "wide") == wide).all(), ending
        run("export", tmp_path / "run.oca", "wide", "--slice", "-10:,5:69000", "--to",
            tmp_path / f"part{ending}")
        assert (load(tmp_path / f"part{ending}", "wide") == wide[-10:, 5:69000]).all(), ending
        run("import", tmp_path / f"out{ending}", "--to", tmp_path / "two.oca", "--replace")
        name = "out" if ending == ".npy" else "wide"
        run("export", tmp_path / "two.oca", name, "--slice", "7,...", "--to", tmp_path / "row.npy",
            "--replace")
        assert (np.load(tmp_path / "row.npy") == wide[7]).all(), ending


@pytest.mark.parametrize("order", ["C", "F"])
def test_what_is_compressed_stays_so(tmp_path, order):
    smooth = np.asarray(np.arange(60000.0).reshape(200, 300), order=order)
    np.savez(tmp_path / "in.npz", smooth=smooth, text=np.array("a flame"))
    run("import", tmp_path / "in.npz", "--to", tmp_path / "run.oca", "--compress", "zstd",
        "--tiles", "64,90")
    for ending in ".npz", ".h5", ".nc", ".zarr":
        run("export", tmp_path / "run.oca", "--to", tmp_path / f"out{ending}")
        run("export", tmp_path / "run.oca", "smooth", "--slice", "3:,5", "--to",
            tmp_path / f"part{ending}")
        assert (load(tmp_path / f"out{ending}", "smooth") == smooth).all(), ending
        assert (load(tmp_path / f"part{ending}", "smooth") == smooth[3:, 5]).all(), ending
        run("import", tmp_path / f"out{ending}", "--to", tmp_path / "two.oca", "--replace")
        run("export", tmp_path / "two.oca", "smooth", "--to", tmp_path / "back.npy", "--replace")
        assert (np.load(tmp_path / "back.npy") == smooth).all(), ending
    with h5py.File(tmp_path / "out.h5") as file:
        assert file["smooth"].compression == "gzip" and file["smooth"].shuffle
        assert file["smooth"].id.get_storage_size() < smooth.nbytes / 4
    with netCDF4.Dataset(tmp_path / "out.nc") as file:
        assert file["smooth"].filters()["zlib"]
    chunks = [p for p in (tmp_path / "out.zarr" / "smooth").iterdir() if p.name[0] != "."]
    assert sum(p.stat().st_size for p in chunks) < smooth.nbytes / 4


@pytest.mark.parametrize("ending", [".npy", ".npz", ".h5", ".nc", ".zarr"])
@pytest.mark.parametrize("tiles", ["77,40960", "80,1000"])
def test_pieces_of_several_tiles(tmp_path, ending, tiles):
    wide = np.random.default_rng(2).integers(0, 9, (80, 1 << 20), "u1")  # 80 MiB
    np.save(tmp_path / "wide.npy", wide)
    run("import", tmp_path / "wide.npy", "--to", tmp_path / "one.oca", "--tiles", "30,65536")
    if ending != ".npy":
        run("export", tmp_path / "one.oca", "--to", tmp_path / f"wide{ending}")
    run("import", tmp_path / f"wide{ending}", "--to", tmp_path / "two.oca", "--compress", "lz4",
        "--tiles", tiles)
    run("export", tmp_path / "two.oca", "wide", "--to", tmp_path / "out.npy")
    assert (np.load(tmp_path / "out.npy") == wide).all()


@pytest.mark.parametrize("ending", [".h5", ".nc", ".zarr"])
def test_attributes_groups_and_texts(tmp_path, ending):
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["flow/u"] = values("f8")
        file["flow/u"].attrs["unit"] = "m/s"
        file["flow/u"].attrs["count"] = 3
        file["title"] = "a flame, ö"
        file.attrs["history"] = "made"
    run("import", tmp_path / "in.h5", "--to", tmp_path / "run.oca")
    run("export", tmp_path / "run.oca", "--to", tmp_path / f"out{ending}")
    run("import", tmp_path / f"out{ending}", "--to", tmp_path / "two.oca")
    run("export", tmp_path / "two.oca", "--to", tmp_path / "back.h5")
    with h5py.File(tmp_path / "back.h5") as file:
        assert (file["flow/u"][()] == values("f8")).all()
        assert file["flow/u"].attrs["unit"] == "m/s" and file["flow/u"].attrs["count"] == "3"
        assert file["title"][()].decode() == "a flame, ö"
        assert file.attrs["history"] == "made"


def test_what_h5py_writes(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file.create_dataset("packed", data=values("f8", (100, 70)), chunks=(30, 40),
                            compression="gzip")
        file["big"] = values(">i4")
        file["kinds"] = np.arange(4, dtype=h5py.enum_dtype({"a": 0, "b": 3}, basetype="i2"))
        file.create_dataset("names", data=["a", "bc"], dtype=h5py.string_dtype())
    assert "'names'" in run("import", tmp_path / "in.h5", "--to", tmp_path / "x.oca", status=1)
    assert not (tmp_path / "x.oca").exists()
    run("import", tmp_path / "in.h5", "packed", "big", "kinds", "--to", tmp_path / "run.oca")
    run("export", tmp_path / "run.oca", "--to", tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as found:
        assert (found["packed"] == values("f8", (100, 70))).all()
        assert (found["big"] == values("i4")).all()
        assert found["kinds"].dtype == "i2" and (found["kinds"] == np.arange(4)).all()


def test_what_netcdf4_writes(tmp_path):
    for form in "NETCDF4", "NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET":
        with netCDF4.Dataset(tmp_path / "in.nc", "w", format=form) as file:
            file.createDimension("time", None)
            file.createDimension("x", 5)
            u = file.createVariable("u", "f4", ("time", "x"), fill_value=-1.5)
            u[:] = values("f4")
            u.units = "K"
        run("import", tmp_path / "in.nc", "--to", tmp_path / "run.oca", "--replace")
        told = run("info", tmp_path / "run.oca", "u")
        assert "dimensions: time x" in told and "units: K" in told and "_FillValue: -1.5" in told
        run("export", tmp_path / "run.oca", "--to", tmp_path / "out.nc", "--replace")
        with netCDF4.Dataset(tmp_path / "out.nc") as file:
            assert file["u"].dimensions == ("time", "x") and file["u"]._FillValue == -1.5
            assert (file["u"][:] == values("f4")).all()


@pytest.mark.parametrize("version", [2, 3])
def test_what_zarr_writes(tmp_path, version):
    group = zarr.open_group(tmp_path / "in.zarr", mode="w", zarr_format=version)
    codecs = {2: ["Zlib", "Zstd", "Blosc", "GZip"], 3: ["GzipCodec", "ZstdCodec", "BloscCodec"]}
    module = zarr.codecs if version == 3 else __import__("numcodecs")
    packers = {name.lower(): getattr(module, name)() for name in codecs[version]}
    for name, packer in {"plain": None, **packers}.items():
        for dtype in "f8", "i2", "?", "c16":
            array = group.create_array(f"{name}/{dtype.strip('?') or 'b'}", shape=(20, 30),
                                       chunks=(7, 11), dtype=dtype, compressors=packer,
                                       fill_value=1)
            array[:15] = values(dtype, (15, 30))
    if version == 2:
        group.create_array("columns", shape=(20, 30), chunks=(7, 11), dtype="f4",
                           order="F")[...] = values("f4", (20, 30))
    group.attrs["unit"] = "K"
    run("import", tmp_path / "in.zarr", "--to", tmp_path / "run.oca")
    run("export", tmp_path / "run.oca", "--to", tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as found:
        assert len(found) == (len(packers) + 1) * 4 + (version == 2)
        for name in found:
            assert (found[name] == group[name][...]).all(), name
    assert "unit: K" in run("info", tmp_path / "run.oca")


def test_a_chunk_of_zarr_whose_checksum_differs_is_refused(tmp_path):
    group = zarr.open_group(tmp_path / "in.zarr", mode="w", zarr_format=3)
    sum_of, packed = zarr.codecs.Crc32cCodec(), zarr.codecs.GzipCodec()
    for name, codecs in {"u": sum_of, "v": [sum_of, packed], "w": [packed, sum_of]}.items():
        group.create_array(name, shape=(20, 30), chunks=(7, 11), dtype="f8",
                           compressors=codecs)[...] = values("f8", (20, 30))
    run("import", tmp_path / "in.zarr", "--to", tmp_path / "run.oca")
    run("export", tmp_path / "run.oca", "--to", tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as found:
        assert all((found[name] == values("f8", (20, 30))).all() for name in "uvw")
    chunk = tmp_path / "in.zarr" / "u" / "c" / "1" / "2"
    raw = bytearray(chunk.read_bytes())
    raw[100] ^= 1
    chunk.write_bytes(raw)
    told = run("import", tmp_path / "in.zarr", "--to", tmp_path / "bad.oca", status=1)
    assert "u/c/1/2" in told and "checksum" in told
    assert not (tmp_path / "bad.oca").exists()


@pytest.mark.filterwarnings("ignore:Stored array in format")
def test_fields_of_npy_may_have_any_name(tmp_path, oddly_named):
    np.save(tmp_path / "a.npy", oddly_named)
    run("import", tmp_path / "a.npy", "--to", tmp_path / "run.oca")
    run("export", tmp_path / "run.oca", "a", "--to", tmp_path / "b.npy")
    found = np.load(tmp_path / "b.npy")
    assert found.dtype == oddly_named.dtype and (found == oddly_named).all()


def test_xarray_opens_what_is_exported(tmp_path):
    xarray = pytest.importorskip("xarray")
    np.save(tmp_path / "u.npy", values("f8", (4, 4, 6)))
    run("import", tmp_path / "u.npy", "--to", tmp_path / "run.oca")
    for ending, more in (".zarr", {"consolidated": False}), (".nc", {"engine": "netcdf4"}):
        run("export", tmp_path / "run.oca", "--to", tmp_path / f"out{ending}")
        opened = xarray.open_dataset(tmp_path / f"out{ending}", **(
            {"engine": "zarr", **more} if ending == ".zarr" else more))
        assert (opened.u.values == values("f8", (4, 4, 6))).all()
        opened.close()


def test_what_is_refused_changes_nothing(tmp_path):
    np.save(tmp_path / "a.npy", values("f8"))
    np.save(tmp_path / "o.npy", np.array([{}, 1], dtype=object), allow_pickle=True)
    np.save(tmp_path / "u.npy", np.array(["a", "b"]))
    run("import", tmp_path / "a.npy", "--to", tmp_path / "run.oca")
    before = (tmp_path / "run.oca").read_bytes()
    whole = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "cut.npy").write_bytes(whole[:-1])
    (tmp_path / "head.npy").write_bytes(whole[:50])
    (tmp_path / "text.npy").write_text("no array")
    (tmp_path / "b.h5").write_text("no array")
    for name, words in {"o.npy": "pickled", "u.npy": "encode", "cut.npy": "truncated",
                        "head.npy": "header", "text.npy": "not an .npy file", "a.npy": "--replace",
                        "b.h5": "open", "none.npy": "No such file", "a.csv": ".zarr"}.items():
        told = run("import", tmp_path / name, "--to", tmp_path / "run.oca",
                   status=2 if name == "a.csv" else 1)
        assert words in told, told
        assert name == "a.npy" or not run("import", tmp_path / name, "--to", tmp_path / "new.oca",
                                          status=2 if name == "a.csv" else 1).startswith("-")
    assert (tmp_path / "run.oca").read_bytes() == before
    assert not (tmp_path / "new.oca").exists()
    np.savez(tmp_path / "two.npz", a=values("f8"), c=np.ones((3, 3), "c16"))
    run("import", tmp_path / "two.npz", "--to", tmp_path / "two.oca")
    assert "NetCDF has no <c16" in run("export", tmp_path / "two.oca", "--to", tmp_path / "x.nc",
                                       status=2)
    assert not (tmp_path / "x.nc").exists()
    (tmp_path / "x.npz").write_text("precious")
    assert "--replace" in run("export", tmp_path / "two.oca", "--to", tmp_path / "x.npz", status=1)
    assert (tmp_path / "x.npz").read_text() == "precious"
    assert not [p for p in pathlib.Path(tmp_path).iterdir() if p.name.endswith(".part")]
