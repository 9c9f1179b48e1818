"""A verdict as short text that is the same for the same verdict in every process."""

import dataclasses
import enum
import json
from collections.abc import Mapping, Set
from typing import Any


def canonical(verdict: Any) -> str:
    """As JSON: classes by their name and the fields that they print, sets in order, bytes as latin-1."""
    return json.dumps(_plain(verdict), sort_keys=True, separators=(",", ":"))


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes | bytearray):
        return value.decode("latin-1")
    if isinstance(value, enum.Enum):
        return value.name
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {one.name: _plain(getattr(value, one.name)) for one in dataclasses.fields(value) if one.repr}
        return {
            type(value).__name__: {name: one for name, one in fields.items() if one not in (None, False, "", [], {})}
        }
    if isinstance(value, Mapping):
        return {_key(key): _plain(one) for key, one in value.items()}
    if isinstance(value, Set):
        return sorted((_plain(one) for one in value), key=json.dumps)
    if hasattr(value, "_asdict"):
        return {type(value).__name__: {name: _plain(one) for name, one in value._asdict().items()}}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    raise TypeError(f"{type(value).__name__} in a verdict")


def _key(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(_plain(key))
