"""The binlogs that a path means: an archive of the relay, a directory of plain binlogs, a pattern, or one file."""

import itertools
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import ExitCode, RelayError
from relay.archive.catalog.catalog import Catalog
from relay.archive.catalog.generation_directories import FIRST, begun_generations, generation_numbers, generation_path
from relay.archive.storage.archive_errors import ArchiveError
from relay.archive.storage.files import BESIDE_SUFFIXES, CATALOG_NAME
from relay.archive.storage.storage_location import GONE_SUFFIX, PLACE_SUFFIX
from relay.binlog_tables.plan.sequence import base_of, sequences_from
from relay.binlog_tables.plan.store import LocalStore, Store, plain_path
from relay.packed.packed_facts import plain_name

_NAME: Final = re.compile(r"(.+)\.(\d{6,})")
_BESIDE: Final = (*BESIDE_SUFFIXES, ".index", PLACE_SUFFIX, GONE_SUFFIX)
_GENERATION: Final = re.compile(r"g\d{4,9}")


class NothingToRead(RelayError):
    """The error that there is no binlog at a path. `str()` is a sentence with what to do."""

    exit_code = ExitCode.WRONG_USE


@dataclass(frozen=True, slots=True)
class SeriesFile:
    """A binlog. `end` is up to where it may be read (None: its size when it is opened).

    `growing` means that a relay is writing it, so what follows its last whole transaction does not count yet. `cut` means that the
    source's crash cut its last transaction. `damaged` means that bytes from `end` on cannot be trusted, as the archive found.
    `followed` means that its source moved on to another file; `following` is that of the next number, if only the files show whether
    this one is complete. `sequence_base` is the base of its sequences (see sequence); None if its order among the others is unknown, -1
    if it is too large.
    """

    path: str
    name: str
    end: int | None = None
    growing: bool = False
    cut: bool = False
    damaged: bool = False
    followed: bool = False
    following: str = ""
    sequence_base: int | None = None

    @property
    def generation(self) -> str:
        """The later source's directory in the archive that the file is in, `g0002`; empty for the first one's."""
        return self.name.rpartition("/")[0]

    @property
    def number(self) -> int:
        """The number at the name's end; -1 if it has none."""
        return _order(self.name)[1]

    @property
    def sequences(self) -> tuple[int, int]:
        """The minimum and the maximum of the sequences in it; of all sequences if it has no base."""
        return sequences_from(self.sequence_base)

    @property
    def series(self) -> str:
        """The common part of the names of one source's files; the whole name if it has no number."""
        match = _NAME.fullmatch(self.name)
        return match[1] if match else self.name


def find_files(store: Store, path: str, *further: str) -> list[SeriesFile]:
    """Return the binlogs at `path`, in the order in which they were written. Raises: NothingToRead, OSError.

    An archive that has followed several sources has a directory for each later one in it; their files are called g0002/NAME, and come
    after those of the previous source. `further` are the places of other files of the same source.
    """
    files = _files_at(store, path)
    if further:
        files = _together(files, [_files_at(store, one) for one in further])
    files = [
        replace(file, followed=file.series == following.series, following=_following(file, following))
        for file, following in itertools.pairwise([*files, SeriesFile("", "")])
    ]
    return _in_sequence(store, files)


def _following(file: SeriesFile, following: SeriesFile) -> str:
    """Return the path of the next one if no catalog knows up to where a file must be read."""
    known = file.end is not None or file.growing
    return (
        following.path if not known and (file.series, file.number + 1) == (following.series, following.number) else ""
    )


def _together(files: list[SeriesFile], others: list[list[SeriesFile]]) -> list[SeriesFile]:
    """Return files of several places, in one order. Raises: NothingToRead if two have one name."""
    found: dict[str, SeriesFile] = {}
    for file in [*files, *itertools.chain.from_iterable(others)]:
        there = found.setdefault(file.name, file)
        if there is not file:
            raise NothingToRead(
                f"{there.path} and {file.path} have one name. Several paths are parts of one source's binlogs; read those of "
                "other sources by a load of their own."
            )
    return sorted(found.values(), key=lambda file: (_generation(file.generation), file.number, file.name))


def _in_sequence(store: Store, files: list[SeriesFile]) -> list[SeriesFile]:
    """Return the files with the bases of their sequences, if their numbers give the order in which they were written."""
    whole = any(file.generation for file in files)
    numbered: list[SeriesFile] = []
    for _name, group in itertools.groupby(files, lambda file: file.generation):
        found = list(group)
        numbers = [file.number for file in found]
        if numbers[0] < 0 or not all(low < high for low, high in itertools.pairwise(numbers)):
            numbered += found
            continue
        known: dict[str, int] = {}
        for file in found:
            directory = _directory(file.path)
            if directory not in known:
                known[directory] = _generation(file.generation if whole else _own_generation(store, directory))
            numbered.append(replace(file, sequence_base=base_of(known[directory], file.number)))
    return numbered


def _own_generation(store: Store, directory: str) -> str:
    """Return the name of a later source's directory in its archive, if only that is read."""
    above, _, name = directory.rpartition("/")
    inner = _generation(name) != FIRST and store.is_file(store.join(above or "/", CATALOG_NAME))
    return name if inner else ""


def order_of(name: str) -> tuple[int, int]:
    """Return a file's order in an archive, by its name alone."""
    return _generation(name.rpartition("/")[0]), _order(name)[1]


def _generation(directory: str) -> int:
    return generation_numbers([directory])[-1]


def files_up_to(store: Store, path: str, files: list[SeriesFile], name: str, position: int) -> list[SeriesFile]:
    """Return those of the files at `path` that existed when `name` was the newest, and it up to `position`. A missing one is among
    them: its reader finds that out."""
    behind = next((index for index, file in enumerate(files) if file.name == name), None)
    if behind is None:
        return [*files, SeriesFile(store.join(path, name), name, end=position)]
    last = replace(files[behind], end=position, followed=False, following="")
    return files[:behind] + ([last] if position > FIRST_EVENT else [])


def _files_at(store: Store, path: str) -> list[SeriesFile]:
    if store.is_file(path):
        return _as_archived(store, [SeriesFile(path, _binlog(_base(path)))])
    if not store.is_directory(path):
        if any(mark in path for mark in "*?["):
            return _matching(store, path)
        raise NothingToRead(f"there is nothing at {path}. Name an archive, a directory of binlogs, or a binlog.")
    names = store.names(path)
    if CATALOG_NAME in names and isinstance(store, LocalStore):
        return _generations(store, path)
    # This is a copy of an archive, or one that is read over a network.
    later = [file for name in names if _GENERATION.fullmatch(name) for file in _of_generation(store, path, name)]
    binlogs = _stored_binlogs(names)
    if not binlogs and later:
        return later
    if not binlogs:
        inner = [name for name in names if store.is_file(store.join(store.join(path, name), CATALOG_NAME))]
        if len(inner) == 1:
            return _files_at(store, store.join(path, inner[0]))
        if inner:
            raise NothingToRead(f"{path} holds the archives of several sources: {', '.join(inner)}. Name one of them.")
        raise NothingToRead(f"{path} holds no binlog: none of its {len(names)} names ends in a number of six digits.")
    return [SeriesFile(store.join(path, binlogs[name]), name) for name in sorted(binlogs, key=_order)] + later


def _matching(store: Store, pattern: str) -> list[SeriesFile]:
    """Return the files that a pattern names, without those beside binlogs."""
    matching = [one for one in store.matching(pattern) if not one.endswith(_BESIDE)]
    plain = set(matching)
    found = [SeriesFile(one, _binlog(_base(one))) for one in matching if (plain_name(one) or "") not in plain]
    if not found:
        raise NothingToRead(f"no file matches {pattern}.")
    return _as_archived(store, sorted(found, key=lambda file: _order(file.name)))


def _as_archived(store: Store, files: list[SeriesFile]) -> list[SeriesFile]:
    """Return the files; those of an archive with its catalog's facts: up to where, and whether a relay is writing them."""
    if not isinstance(store, LocalStore):
        return files
    known: dict[str, dict[str, SeriesFile]] = {}
    for directory in {_directory(file.path) for file in files}:
        if store.is_file(store.join(directory, CATALOG_NAME)):
            try:
                known[directory] = {file.name: file for file in _archived(store, directory, "")}
            except ArchiveError:
                continue
    told = [known.get(_directory(file.path), {}).get(file.name, file) for file in files]
    return [replace(archived, path=file.path) for archived, file in zip(told, files, strict=True)]


def _of_generation(store: Store, path: str, name: str) -> list[SeriesFile]:
    """Return the plain binlogs of a later source, in its own directory in the archive."""
    directory = store.join(path, name)
    if not store.is_directory(directory):
        return []
    binlogs = _stored_binlogs(store.names(directory))
    return [SeriesFile(store.join(directory, binlogs[one]), f"{name}/{one}") for one in sorted(binlogs, key=_order)]


def _stored_binlogs(names: list[str]) -> dict[str, str]:
    """Map the binlogs' names to their stored names; if one exists plain and packed, as a move leaves it, the plain one is taken."""
    found = {binlog: name for name in names if _NAME.fullmatch(binlog := _binlog(name))}
    return {**found, **{name: name for name in names if _NAME.fullmatch(name)}}


def _binlog(name: str) -> str:
    return plain_name(name) or name


def _generations(store: Store, path: str) -> list[SeriesFile]:
    """Return the files of all sources of an archive, in their order; those of later generations are named `g0002/mysql-bin.000001`.

    If a source replaced another one, its first file may begin with transactions that the previous files contain.
    """
    found: list[SeriesFile] = []
    for number, _directory in begun_generations(Path(plain_path(path))):
        within = str(generation_path(Path(), number)) if number != FIRST else ""
        found += _archived(store, store.join(path, within) if within else path, within)
    if not found:
        raise NothingToRead(f"the archive at {path} is empty. It fills when a relay with it runs.")
    return found


def _archived(store: Store, path: str, within: str) -> list[SeriesFile]:
    names = store.names(path)
    catalog = Catalog.open_read_only(Path(plain_path(path)) / CATALOG_NAME)
    try:
        files = catalog.files()
    finally:
        catalog.close()
    found = [
        SeriesFile(
            store.join(path, file.name),
            file.name,
            end=file.end if file.sealed or file.damaged else None,
            growing=not file.sealed and not file.damaged,
            cut=file.cut,
            damaged=file.damaged,
        )
        for file in files
    ]
    # A relay that has just begun a file updates the catalog a moment later. Only the number counts: numbers go up in an archive, while
    # the source may give its binlogs another name.
    newest = max((_order(file.name)[1] for file in found), default=-1)
    new = [name for name in names if _NAME.fullmatch(name) and _order(name)[1] > newest]
    found += [
        SeriesFile(store.join(path, name), name, growing=True) for name in sorted(new, key=lambda one: _order(one)[1])
    ]
    if not within:
        return found
    return [replace(file, name=f"{within}/{file.name}") for file in found]


def _directory(path: str) -> str:
    return path.rpartition("/")[0] or ("/" if path.startswith("/") else ".")


def _base(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _order(name: str) -> tuple[str, int, str]:
    match = _NAME.fullmatch(name)
    return (match[1], int(match[2]), name) if match else (name, -1, name)
