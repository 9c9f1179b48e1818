"""Root that becomes another user keeps one right: to read all. What it writes is then bound by that user's rights, and programs, keys
and passwords that only root may read can still be read. Linux only; elsewhere, or if it is not allowed, nothing is kept."""

import contextlib
import ctypes
import sys
from typing import Final

_PR_SET_KEEPCAPS: Final = 8
_PR_CAP_AMBIENT: Final = 47
_PR_CAP_AMBIENT_RAISE: Final = 2
_CAP_DAC_READ_SEARCH: Final = 2
_VERSION_3: Final = 0x20080522


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def keep_rights() -> None:
    """Keep the rights permitted; call it before the user changes. They are not in force until `read_all` selects one."""
    _prctl(_PR_SET_KEEPCAPS, 1)


def read_all() -> None:
    """Keep only the right to read; call it after the user changed. It remains for programs that are started too."""
    mask = 1 << _CAP_DAC_READ_SEARCH
    if not _set_rights(mask):
        _set_rights(0)
        return
    _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, _CAP_DAC_READ_SEARCH)


def _set_rights(mask: int) -> bool:
    if sys.platform != "linux":
        return False
    sets = (_Sets * 2)(_Sets(mask, mask, mask), _Sets(0, 0, 0))
    with contextlib.suppress(OSError, AttributeError):
        return bool(ctypes.CDLL(None).capset(ctypes.byref(_Header(_VERSION_3, 0)), ctypes.byref(sets)) == 0)
    return False


def _prctl(option: int, first: int, second: int = 0) -> None:
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(option, first, second, 0, 0)
