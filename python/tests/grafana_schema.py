"""Grafana's schema of dashboards, as its Foundation SDK has it: what is wrong in one."""

import enum
import json
import types
import typing

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

register_default_plugins()  # the kinds of panels and queries


def faults_of(board):
    """One line for each value that no such field may have, and each field that there is not."""
    dashboard = Dashboard.from_json(board)
    kept = json.loads(JSONEncoder().encode(dashboard))
    return list(_wrong(dashboard, Dashboard, "board")) + list(_lost(board, kept, "board"))


def _lost(given, kept, where):
    """What the SDK does not know does not come back from it."""
    if isinstance(given, dict) and isinstance(kept, dict):
        for name, value in given.items():
            if name in kept:
                yield from _lost(value, kept[name], f"{where}.{name}")
            else:
                yield f"{where}.{name}: there is no such field"
    elif isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        for i, (before, after) in enumerate(zip(given, kept)):
            yield from _lost(before, after, f"{where}[{i}]")
    elif given != kept:
        yield f"{where}: {given!r} became {kept!r}"


def _is_of_the_sdk(kind):
    return isinstance(kind, type) and kind.__module__.startswith("grafana_foundation_sdk.models")


def _wrong(value, kind, where):
    """The SDK decodes texts and numbers without a look: they are compared with its types."""
    origin, of = typing.get_origin(kind), typing.get_args(kind)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        if value not in [one.value for one in kind]:
            yield f"{where}: {value!r} is no {kind.__name__}"
    elif origin in (typing.Union, types.UnionType):
        # Of a list or an object, what is wrong within it, not that it is not None.
        some = [one for one in of if (one is type(None)) == (value is None)] or of
        yield from min((list(_wrong(value, one, where)) for one in some), key=len)
    elif origin is list and isinstance(value, list):
        for i, one in enumerate(value):
            yield from _wrong(one, of[0], f"{where}[{i}]")
    elif origin is typing.Literal:
        if value not in of:
            yield f"{where}: {value!r} is none of {of}"
    elif _is_of_the_sdk(kind) and isinstance(value, dict):
        yield from _wrong(kind.from_json(value), kind, where)  # which it leaves as it is
    elif _is_of_the_sdk(type(value)):
        hints = typing.get_type_hints(type(value))
        for name, part in vars(value).items():
            yield from _wrong(part, hints.get(name, object), f"{where}.{name}")
    elif kind is float:
        if type(value) not in (int, float):
            yield f"{where}: {value!r} is no number"
    elif isinstance(origin or kind, type) and not isinstance(value, origin or kind):
        yield f"{where}: {value!r} is no {kind}"
