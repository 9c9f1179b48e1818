"""Random bytes that stay the same over restarts, for the relay alone."""

import os
from pathlib import Path
from typing import Final

from relay.disk.file_calls import SECRET_MODE, make_file, open_to_read

_OTHERS: Final = 0o077


def kept_secret(path: Path, size: int) -> bytes:
    """Return the `size` bytes in the file, which is created if it is missing, or another kind of file. Blocking; a few bytes. Raises:
    OSError."""
    found = _read(path, size)
    if found is not None:
        return found
    made = os.urandom(size)
    with open(make_file(path, SECRET_MODE), "wb") as file:
        file.write(made)
        file.flush()
        os.fsync(file.fileno())
    return made


def _read(path: Path, size: int) -> bytes | None:
    """Read the bytes; None: the file is missing, of another size (its writing was cut off), a link, or others may have read it."""
    try:
        descriptor = open_to_read(path)
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        data = b"" if os.fstat(descriptor).st_mode & _OTHERS or path.is_symlink() else file.read(size + 1)
    return data if len(data) == size else None
