"""Plain errors: an OSError that keeps nothing alive."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

_Method = TypeVar("_Method", bound=Callable[..., Any])


def plain_errors(method: _Method) -> _Method:
    """An OSError of the method holds none of its frames: they would hold views, and so keep the
    array from being closed for as long as the error is handled."""

    @functools.wraps(method)
    def call(*arguments: Any, **options: Any) -> Any:
        try:
            return method(*arguments, **options)
        except OSError as error:
            arguments, options = (), {}  # a view may be among them
            raise error.with_traceback(None)  # noqa: B904 (the same error)

    return call  # type: ignore[return-value]
