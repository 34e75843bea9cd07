"""Datasets: what an xarray.Dataset is in a container, and how one is written.

Variables are arrays, encoded as CF has it (times are numbers with ``units``), so that programs in
other languages understand them. ``dimensions`` names an array's axes, ``coordinates`` what else
belongs to it. An attribute that is no text is kept as JSON; ``_json`` lists which are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .arrays import Arrays
from .stored_types import kept

if TYPE_CHECKING:
    from xarray import Dataset, Variable

DIMENSIONS = "dimensions"
TYPED = "_json"
_LAYOUT = ("tiles", "order", "compress")
_COMPRESS = re.compile("none|lz4|zstd(:([1-9]|1[0-9]))?")
_NUMBERS = ("_FillValue", "missing_value", "scale_factor", "add_offset")


def store_dataset(ds: Dataset, into: Any, mode: str = "w", *,
                  encoding: Mapping[str, Mapping[str, Any]] | None = None) -> None:
    """Writes a Dataset as a container, which ``xarray.open_dataset`` opens.

    ``into`` is a path or URL, opened with ``mode``, or Arrays that are open for writing and stay
    so. ``encoding`` has for each variable ``tiles``, ``order``, ``compress`` (``zstd``) and
    what CF has (``dtype``, ``scale_factor``, …). Variables over dask are computed and stored
    chunk by chunk.

    >>> import numpy, outcore, tempfile, xarray
    >>> path = tempfile.mkdtemp() + "/run.oca"
    >>> days = numpy.array(["2024-01-01", "2024-01-02", "2024-01-03"], "M8[s]")
    >>> ds = xarray.Dataset({"t": (("time", "x"), numpy.arange(12.0).reshape(3, 4))},
    ...                     {"time": days})
    >>> outcore.store_dataset(ds, path, encoding={"t": {"tiles": (2, 2)}})
    >>> with xarray.open_dataset(path) as back:
    ...     float(back.t.sel(time="2024-01-03").sum())
    38.0
    """
    variables, attributes, layouts = _encode(ds, encoding or {})
    if isinstance(into, Arrays):
        _write(into, variables, attributes, layouts)
        return
    with Arrays(into, mode) as out:
        _write(out, variables, attributes, layouts)


def _encode(ds: Dataset, encoding: Mapping[str, Mapping[str, Any]]) -> tuple[
        dict[str, Variable], dict[str, Any], dict[str, dict[str, Any]]]:
    """Everything that can be refused is, before anything is written."""
    from xarray import conventions
    from xarray.coding.strings import EncodedStringCoder, ensure_fixed_length_bytes
    found, attributes = conventions.encode_dataset_coordinates(ds)
    plain: dict[Any, Any] = {name: variable.copy(deep=False) for name, variable in found.items()}
    for name, options in encoding.items():
        if name not in plain:
            raise ValueError(f"encoding of {name!r}: the dataset has no such variable")
        plain[name].encoding = dict(options)
    for name, variable in plain.items():
        if variable.dtype.kind in "OUT":
            plain[name] = _as_text(variable)
    encoded, _ = conventions.cf_encoder(plain, {})
    variables: dict[str, Variable] = {}
    layouts: dict[str, dict[str, Any]] = {}
    for name, variable in encoded.items():
        variable = ensure_fixed_length_bytes(EncodedStringCoder(False).encode(variable, name))
        if variable.attrs.get("dtype") == "bool" and found[name].dtype == bool:
            variable = variable.astype(bool)  # which NetCDF has not, but we have
            del variable.attrs["dtype"]
        if variable.attrs.get("_FillValue", 0) != variable.attrs.get("_FillValue", 0):
            del variable.attrs["_FillValue"]  # NaN is missing without a word
        unknown = [key for key in encoding.get(name, ())
                   if key in variable.encoding and key not in _LAYOUT]
        if unknown:
            raise ValueError(f"encoding of {name!r}: {', '.join(unknown)} means nothing here: "
                             "tiles, order, compress, and what CF has are known")
        layout = {key: variable.encoding[key] for key in _LAYOUT if key in variable.encoding}
        if name not in encoding and len(layout.get("tiles", ())) not in (0, variable.ndim):
            del layout["tiles"]  # of what it was before an axis was taken away
        _check_layout(str(name), variable.ndim, layout)
        try:
            kept(variable.dtype)
        except TypeError as error:
            raise TypeError(f"store {name!r}: {error}") from None
        variables[str(name)], layouts[str(name)] = variable, layout
        texts_of(f"attributes of {name!r}", variable.attrs)
        for dim in variable.dims:
            if not isinstance(dim, str) or not dim or dim != "".join(dim.split()):
                raise ValueError(f"{name!r} has a dimension {dim!r}: take a name without spaces")
    texts_of("attributes of the dataset", attributes)
    return variables, dict(attributes), layouts


def _check_layout(name: str, ndim: int, layout: Mapping[str, Any]) -> None:
    tiles, compress = layout.get("tiles", ()), layout.get("compress")
    if len(tiles) not in (0, ndim) or any(int(n) < 1 for n in tiles):
        raise ValueError(f"encoding of {name!r}: tiles {tuple(tiles)} do not fit: as many "
                         f"dimensions, {ndim}, each at least 1")
    if compress and not _COMPRESS.fullmatch(compress):
        raise ValueError(f"encoding of {name!r}: compress {compress!r} is unknown: write lz4, zstd "
                         "or zstd:LEVEL (1 … 19)")


def _as_text(variable: Variable) -> Variable:
    """Texts get as many bytes as their letters need, so these have to be known. Other objects, as
    dates, are CF's."""
    variable = variable.compute()
    values = variable.values
    kind = next((kind for kind in (str, bytes)
                 if all(isinstance(each, kind) for each in values.flat)), None)
    if kind is None:
        return variable
    variable.encoding.pop("dtype", None)
    variable.values = np.asarray(values, kind)
    return variable


def _write(out: Arrays, variables: Mapping[str, Variable], attributes: Mapping[str, Any],
           layouts: Mapping[str, dict[str, Any]]) -> None:
    sources: list[Any] = []
    targets: list[Any] = []
    for name, variable in variables.items():
        layout, data = layouts[name], variable.data
        if hasattr(data, "__dask_graph__") and variable.ndim:
            sources.append(data)
            try:
                target = out.alloc(name, variable.shape, variable.dtype, may_replace=True, **layout)
            except FileExistsError:  # this session's, of another shape
                del out[name]
                target = out.alloc(name, variable.shape, variable.dtype, **layout)
            targets.append(target)
        else:
            out.store(name, np.asarray(data), **layout)
        attrs = out._attributes_of(name)
        attrs.clear()
        attrs.update(texts_of(name, variable.attrs))
        if variable.dims:
            attrs[DIMENSIONS] = " ".join(str(dim) for dim in variable.dims)
    if sources:
        import dask.array
        dask.array.store(sources, targets, lock=False, scheduler="threads")
    out.attrs.update(texts_of("the dataset", attributes))


def texts_of(what: str, attributes: Mapping[Any, Any]) -> dict[str, str]:
    """Attributes as texts; numbers, lists and empty texts as JSON."""
    texts: dict[str, str] = {}
    typed: list[str] = []
    for key, value in attributes.items():
        if not isinstance(key, str) or key in (DIMENSIONS, TYPED):
            raise ValueError(f"{what}: {key!r} is not the name of an attribute here")
        if isinstance(value, str) and value:
            texts[key] = value
            continue
        if isinstance(value, (np.ndarray, np.generic)):
            value = value.tolist()
        try:
            texts[key] = json.dumps(value, ensure_ascii=False)
        except (TypeError, ValueError):
            raise TypeError(f"{what}: {key!r} is of type {type(value).__name__}: text, numbers, "
                            "and lists of them can be kept") from None
        if key not in _NUMBERS or isinstance(value, (str, list)):
            typed.append(key)
    if typed:
        texts[TYPED] = json.dumps(typed, ensure_ascii=False)
    return texts


def values_of(texts: Mapping[str, str]) -> dict[str, Any]:
    """What texts_of was given. What other programs wrote is text, and CF's numbers are numbers."""
    try:
        typed = json.loads(texts.get(TYPED, "[]"))
    except ValueError:
        typed = []
    values: dict[str, Any] = {}
    for key, text in texts.items():
        if key in (DIMENSIONS, TYPED):
            continue
        values[key] = text
        if key in typed or key in _NUMBERS:
            try:
                values[key] = json.loads(text)
            except ValueError:
                values[key] = _number(text) if key in _NUMBERS else text
    return values


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def dims_of(name: str, shape: tuple[int, ...], attributes: Mapping[str, str],
            given: Iterable[str] | None) -> tuple[str, ...]:
    """The names of the axes. Of an array without, such that axes of one length have one name."""
    dims = tuple(attributes.get(DIMENSIONS, "").split() if given is None else given)
    if not dims and shape:
        return tuple(f"phony_{n}" + (f"_{shape[:i].count(n) + 1}" if n in shape[:i] else "")
                     for i, n in enumerate(shape))
    if len(dims) != len(shape):
        raise ValueError(f"'{name}' has {len(shape)} axes, and {len(dims)} names for them: "
                         f"{' '.join(dims)}; give others, dims={{{name!r}: (…)}}")
    return dims
