"""`made-from.json` in the directory of each generation of a view: the generation of the archive that it is built from.

A view begins a generation of its own where the archive does. The numbers are mostly the same, but not where the archive's oldest files
were purged before the view was begun.
"""

import errno
import json
import re
from pathlib import Path
from typing import Final, NamedTuple

from protocol.position import Position
from relay.archive.catalog.generation_directories import FIRST, generation_path
from relay.archive.storage.files import INDEX_NAME, MADE_FROM_NAME, FileLayer, replace_file
from relay.disk.file_calls import read_file
from relay.disk.kept_json import kept_json

_QUALIFIED: Final = re.compile(r"g([0-9]{4,9})\.(.+)")


class MadeGeneration(NamedTuple):
    """A generation of a view, and the archive's from which it is built. The directory of the latter may be missing or empty."""

    number: int
    directory: Path
    source_number: int
    source_directory: Path


def made_generations(archive: Path, view: Path) -> list[MadeGeneration]:
    """Return all generations of a view that have begun, oldest first. `archive` and `view` are the source's directory and the view's.
    Works beside a running relay. Blocking: some calls for each generation, however many files it has. Raises: OSError."""
    found = []
    for number, directory in directories_of(view):
        if number == FIRST or (directory / INDEX_NAME).exists() or (directory / MADE_FROM_NAME).exists():
            source = made_from(directory, number)
            found.append(MadeGeneration(number, directory, source, generation_path(archive, source)))
    return found


def directories_of(archive: Path) -> list[tuple[int, Path]]:
    """Return the number and directory of each generation of an archive, also of one that is only prepared. Blocking."""
    found = []
    number, path = FIRST, archive
    while path.is_dir():
        found.append((number, path))
        number += 1
        path = generation_path(archive, number)
    return found


def made_from(directory: Path, number: int) -> int:
    """Return the number of the archive's generation from which generation `number` of a view, in `directory`, is built. Blocking.

    Raises: OSError, also for content that cannot be understood.
    """
    path = directory / MADE_FROM_NAME
    try:
        source = kept_json(read_file(path))["generation"]
    except FileNotFoundError:
        source = FIRST if number == FIRST else None
    except (ValueError, KeyError, TypeError):
        source = None
    if not isinstance(source, int) or source < FIRST:
        text = "it does not say which generation of the archive this one of the view is made from: rebuild the view"
        raise OSError(errno.EIO, text, str(path))
    return source


def keep_made_from(
    directory: Path, number: int, first: Position, next_gno: int, layer: FileLayer, known: bytes = b""
) -> None:
    """Write `made-from.json` before the generation's first file exists, which begins with `first` of the source and the number
    `next_gno`. `known` is the rules' state there from a former source. Blocking.

    Raises: OSError.
    """
    kept: dict[str, object] = {"generation": number, "file": first.file, "position": first.offset, "next": next_gno}
    if known:
        kept["known"] = known.hex()
    replace_file(layer, directory / MADE_FROM_NAME, json.dumps(kept).encode())


class Begun(NamedTuple):
    """The place in the source where a generation of a view began, its first number, and the rules' state there from a former source."""

    position: Position
    next_gno: int
    known: bytes


def begun_with(directory: Path) -> Begun | None:
    """Return where the generation in `directory` began; None: it is unknown. Blocking.

    Raises: OSError, except for a missing file.
    """
    try:
        kept = kept_json(read_file(directory / MADE_FROM_NAME))
        place = Position(str(kept["file"]), int(kept["position"]))
        return Begun(place, int(kept["next"]), bytes.fromhex(kept.get("known", "")))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def named_generation(name: str) -> tuple[int, str] | None:
    """Return the generation and the file name in a name that contains both; None: it does not."""
    match = _QUALIFIED.fullmatch(name)
    return None if match is None else (int(match[1]), match[2])


def qualified(generation: int, name: str) -> str:
    """Return the name of a file with its generation, as `Archive.named` understands it."""
    return f"g{generation:04d}.{name}"
