"""NdarrayMethods: the base of Array, which does what the ndarray over its memory does."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from .plain_errors import plain_errors
from .view import View, lease_of

_Method = Callable[..., Any]
_DELEGATED = (
    "all any argmax argmin argpartition argsort astype byteswap choose clip compress conj "
    "conjugate cumprod cumsum diagonal dot flatten getfield item max mean min nonzero prod ptp "
    "ravel repeat reshape round searchsorted squeeze std sum swapaxes tobytes tolist trace "
    "transpose var view fill sort put partition setfield").split()


class NdarrayMethods(NDArrayOperatorsMixin):
    """Methods, operators and functions of NumPy. Results are plain ndarrays, or Views.

    All of it by what a derived class says: ``_view`` and ``__setitem__``.
    """

    __array_priority__ = 1.0

    def _view(self) -> View:
        """The ndarray over the same memory."""
        raise NotImplementedError

    def __setitem__(self, key: Any, value: Any) -> None:
        raise NotImplementedError

    if TYPE_CHECKING:  # the methods below that are made from a list of names
        all: _Method
        any: _Method
        argmax: _Method
        argmin: _Method
        argpartition: _Method
        argsort: _Method
        astype: _Method
        byteswap: _Method
        choose: _Method
        clip: _Method
        compress: _Method
        conj: _Method
        conjugate: _Method
        cumprod: _Method
        cumsum: _Method
        diagonal: _Method
        dot: _Method
        fill: _Method
        flatten: _Method
        getfield: _Method
        item: _Method
        max: _Method
        mean: _Method
        min: _Method
        nonzero: _Method
        partition: _Method
        prod: _Method
        put: _Method
        ravel: _Method
        repeat: _Method
        reshape: _Method
        round: _Method
        searchsorted: _Method
        setfield: _Method
        sort: _Method
        squeeze: _Method
        std: _Method
        sum: _Method
        swapaxes: _Method
        tobytes: _Method
        tolist: _Method
        trace: _Method
        transpose: _Method
        var: _Method
        view: _Method

    @property
    def flags(self) -> Any:
        return self._view().flags

    @property
    def T(self) -> View:  # noqa: N802 (NumPy's name)
        return self._view().T

    @property
    def mT(self) -> View:  # noqa: N802 (NumPy's name)
        return self._view().mT

    @property
    def real(self) -> Any:
        return self._view().real

    @property
    def imag(self) -> Any:
        return self._view().imag

    @property
    def flat(self) -> Any:
        return self._view().flat

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """The ndarray over the same memory; a copy only where ``dtype`` or ``copy`` asks for it."""
        view = self._view().view(np.ndarray)
        if copy is None:
            return view if dtype is None else view.astype(dtype, copy=False)
        if copy is False and dtype is not None and np.dtype(dtype) != view.dtype:
            raise ValueError(f"as {np.dtype(dtype)} it would be a copy of {view.dtype}")
        return view.astype(view.dtype if dtype is None else dtype, copy=copy)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        # One ndarray for each of ours, with its very dtype: NumPy copies an operand that is written
        # and read, unless both are alike in everything.
        made: dict[int, Any] = {}

        def plain(value: Any) -> Any:
            if not isinstance(value, NdarrayMethods):
                return value
            if id(value) not in made:
                made[id(value)] = value._view().view(np.ndarray)
            return made[id(value)]

        out = options.get("out")
        if out is not None:
            options["out"] = tuple(plain(o) for o in out)
        found = getattr(ufunc, method)(*(plain(i) for i in inputs), **options)
        if out is not None and len(out) == 1 and isinstance(out[0], NdarrayMethods):
            return out[0]
        return found

    def __array_function__(self, function: Any, types: Any, arguments: Any,
                           options: Any) -> Any:
        """NumPy's functions work on Views, and so write where they write; a copy that they give is
        a plain ndarray."""
        if function is np.copyto and self._is_copied(*arguments, **options):
            return None
        out = options.get("out")
        found = function(*_views_of(arguments), **_views_of(options))
        return out if isinstance(out, NdarrayMethods) and found is not None else _plain(found)

    @staticmethod
    def _is_copied(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> bool:
        """numpy.copyto by blocks, where it is an assignment; False where it is more, or wrong."""
        if where is not True or not isinstance(dst, NdarrayMethods) or not hasattr(src, "dtype"):
            return False
        to = dst._view()
        if src.ndim > to.ndim or not np.can_cast(src.dtype, to.dtype, casting):
            return False
        dst[...] = src
        return True

    def dump(self, file: Any) -> None:
        """As ndarray.dump: the elements, and not where they are."""
        self.__array__().dump(file)

    def dumps(self) -> bytes:
        """As ndarray.dumps: the elements, and not where they are."""
        return self.__array__().dumps()

    @property
    def data(self) -> memoryview:
        """Its memory, which it keeps open."""
        return self.__array__().data

    @property
    def ctypes(self) -> Any:
        return self.__array__().ctypes

    def __dlpack__(self, **options: Any) -> Any:
        """A capsule over the same memory (numpy.from_dlpack, torch.from_dlpack)."""
        return np.asarray(self).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # the CPU

    def __bool__(self) -> bool:
        return bool(self._view())

    def __int__(self) -> int:
        return int(self._view())

    def __float__(self) -> float:
        return float(self._view())

    def __contains__(self, value: Any) -> bool:
        return value in self._view()


def _views_of(value: Any) -> Any:
    """The value, with Views for the arrays in it."""
    if isinstance(value, NdarrayMethods):
        return value._view()
    if type(value) in (list, tuple):
        return type(value)(_views_of(part) for part in value)
    if type(value) is dict:
        return {key: _views_of(part) for key, part in value.items()}
    return value


def _plain(found: Any) -> Any:
    """The result, with plain arrays for those that are no part of ours."""
    if type(found) is View and lease_of(found) is None:
        return found.view(np.ndarray)
    if type(found) in (list, tuple):
        return type(found)(_plain(part) for part in found)
    return found


def _delegate(name: str) -> Any:
    def method(self: Any, *arguments: Any, **options: Any) -> Any:
        return getattr(self._view(), name)(*arguments, **options)

    method.__name__ = name
    method.__qualname__ = f"Array.{name}"
    method.__doc__ = f"As numpy.ndarray.{name}."
    return plain_errors(method)


for _name in _DELEGATED:
    if hasattr(np.ndarray, _name):
        setattr(NdarrayMethods, _name, _delegate(_name))
