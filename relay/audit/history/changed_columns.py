"""What a change of a row did, in a line: the values that came, went, or are others."""

import json
from collections.abc import Mapping
from typing import Any


def changed_columns(before: str | None, after: str | None) -> str:
    """`before`, `after`: the row's images, as JSON. An image may lack columns (MINIMAL): what it does not have did not change."""
    old, new = _image(before), _image(after)
    if old is None or new is None:
        return ", ".join(f"{name} = {_told(value)}" for name, value in (new or old or {}).items())
    differ = [
        f"{name}: {_told(old[name])} → {_told(value)}" if name in old else f"{name} → {_told(value)}"
        for name, value in new.items()
        if name not in old or old[name] != value
    ]
    return ", ".join(differ) or "the same values"


def _image(text: str | None) -> Mapping[str, Any] | None:
    if text is None:
        return None
    made = json.loads(text, parse_int=str, parse_float=str)
    return made if isinstance(made, dict) else None


def _told(value: Any) -> str:
    return "NULL" if value is None else value if isinstance(value, str) else json.dumps(value)
