"""Times and sizes as they are written: "30d", "500GiB"."""

import re
from typing import Final

from relay.config.text.problems import Wrong

_TIME: Final = re.compile(r"([1-9][0-9]{0,4})([hd])")
_UNIT_S: Final = {"h": 3600.0, "d": 86400.0}
_SIZE: Final = re.compile(r"([1-9][0-9]{0,8})([KMGT])iB")
_UNIT_SHIFT: Final = {"K": 10, "M": 20, "G": 30, "T": 40}


def checked_time(text: str) -> str:
    """Return hours or days. Raises: Wrong."""
    if _TIME.fullmatch(text) is None:
        raise Wrong("this is no time", 'Write such as "30d" (days) or "12h" (hours)')
    return text


def checked_size(text: str) -> str:
    """Return a number of KiB, MiB, GiB or TiB. Raises: Wrong."""
    if _SIZE.fullmatch(text) is None:
        raise Wrong("this is no size", 'Write such as "500GiB", "800MiB" or "2TiB"')
    return text


def time_s(text: str) -> float:
    """Return the seconds of what `checked_time` accepted."""
    match = _TIME.fullmatch(text)
    assert match is not None
    return float(match[1]) * _UNIT_S[match[2]]


def size_bytes(text: str) -> int:
    """Return the bytes of what `checked_size` accepted."""
    match = _SIZE.fullmatch(text)
    assert match is not None
    return int(match[1]) << _UNIT_SHIFT[match[2]]
