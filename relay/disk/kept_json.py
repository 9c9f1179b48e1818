"""JSON that was stored in a file, and may be foreign by now: anything unexpected is a ValueError."""

import json
from typing import Any, NoReturn


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text[:20]} is no number that was written")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        _no_number(text)
    return number


_DECODER = json.JSONDecoder(parse_constant=_no_number, parse_float=_finite)


def kept_json(data: bytes | str) -> Any:
    """Return the value. Raises: ValueError, also for endless nesting, and for invalid numbers."""
    text = data if isinstance(data, str) else data.decode()
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("it is nested deeper than anything that was written") from None
