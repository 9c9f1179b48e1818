"""Files of a few bytes next to the archive: they are replaced as a whole or not at all."""

from pathlib import Path

from relay.archive.storage.files import FileLayer, replace_file


def write_small_file(path: Path, text: str) -> None:
    """Replace the file. Blocking: it is on the disk, under its name, on return. Raises: OSError."""
    replace_file(FileLayer(), path, text.encode())
