"""Files of a few bytes beside the archive: replaced as a whole or not at all."""

import os
from pathlib import Path

from relay.archive.storage.files import FileLayer


def write_small_file(path: Path, text: str) -> None:
    """Replaces the file. Blocking: it is on the disk, under its name, when this returns. Raises: OSError."""
    temporary = path.with_suffix(".tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o640)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    temporary.rename(path)
    FileLayer().sync_directory(path.parent)
