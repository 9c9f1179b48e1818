"""The check whether an archive can be at the place of relay.toml: it creates a file there, and removes it again."""

import contextlib
import os
from pathlib import Path

from relay.archive.storage.disk_advice import start_advice
from relay.archive.storage.files import TEMPORARY_SUFFIX, FileLayer
from relay.commands.outcome import CommandFailed
from relay.disk.file_calls import make_new_directory, make_new_file, remove_directory, remove_file

_ELSE = "Choose another [archive] dir, or make that directory and give it to the relay's user."


def try_archive_place(directory: Path) -> None:
    """Create `directory` if it is missing, write and sync a file in it, and leave all as it was. Blocking.

    Raises: CommandFailed, which says what was refused.
    """
    made: list[Path] = []
    probe = directory / f"check-config-{os.getpid()}{TEMPORARY_SUFFIX}"
    doing = "made"
    try:
        for place in reversed((directory, *directory.parents)):
            if not place.exists():
                make_new_directory(place)
                made.append(place)
        doing = "written in"
        fd = make_new_file(probe)
        try:
            os.write(fd, bytes(4096))
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        number = error.errno or 0
        existing = next((place for place in (directory, *directory.parents) if _is_there(place)), directory)
        raise CommandFailed(
            f"The archive's directory {directory} cannot be {doing} ({error.strerror}: {error.filename or probe}). "
            f"{start_advice(FileLayer(), existing, number)} {_ELSE}"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            remove_file(probe)
        for place in reversed(made):
            with contextlib.suppress(OSError):
                remove_directory(place)


def _is_there(place: Path) -> bool:
    try:
        return place.exists()
    except OSError:
        return False
