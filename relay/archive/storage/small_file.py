"""Files of a few bytes beside the archive: replaced as a whole or not at all."""

from pathlib import Path

from relay.archive.storage.files import FileLayer, replace_file


def write_small_file(path: Path, text: str) -> None:
    """Replaces the file. Blocking: it is on the disk, under its name, when this returns. Raises: OSError."""
    replace_file(FileLayer(), path, text.encode())
