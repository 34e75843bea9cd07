"""NdarrayMethods: what an Array does as the ndarray over its memory does it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from .plain_errors import plain_errors

_DELEGATED = (
    "all any argmax argmin argpartition argsort astype byteswap choose clip compress conj "
    "conjugate cumprod cumsum diagonal dot flatten getfield item max mean min nonzero prod ptp "
    "ravel repeat reshape round searchsorted squeeze std sum swapaxes tobytes tolist trace "
    "transpose var view fill sort put").split()


class NdarrayMethods(NDArrayOperatorsMixin):
    """Methods, operators and functions of NumPy. Results are plain ndarrays, or Views."""

    __array_priority__ = 1.0

    if TYPE_CHECKING:  # the methods below that are made from a list of names
        def __getattr__(self, name: str) -> Any: ...

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """The ndarray over the same memory; a copy only where ``dtype`` or ``copy`` asks for it."""
        view = self._view().view(np.ndarray)  # type: ignore[attr-defined]
        if copy is None:
            return view if dtype is None else view.astype(dtype, copy=False)
        if copy is False and dtype is not None and np.dtype(dtype) != view.dtype:
            raise ValueError(f"as {np.dtype(dtype)} it would be a copy of {view.dtype}")
        return view.astype(view.dtype if dtype is None else dtype, copy=copy)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        def plain(value: Any) -> Any:
            return np.asarray(value) if isinstance(value, NdarrayMethods) else value

        out = options.get("out")
        if out is not None:
            options["out"] = tuple(plain(o) for o in out)
        found = getattr(ufunc, method)(*(plain(i) for i in inputs), **options)
        if out is not None and len(out) == 1 and isinstance(out[0], NdarrayMethods):
            return out[0]
        return found

    def __dlpack__(self, **options: Any) -> Any:
        """A capsule over the same memory (numpy.from_dlpack, torch.from_dlpack)."""
        return np.asarray(self).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # the CPU

    def __bool__(self) -> bool:
        return bool(self._view())  # type: ignore[attr-defined]

    def __int__(self) -> int:
        return int(self._view())  # type: ignore[attr-defined]

    def __float__(self) -> float:
        return float(self._view())  # type: ignore[attr-defined]

    def __contains__(self, value: Any) -> bool:
        return value in self._view()  # type: ignore[attr-defined]


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
