"""The facts of a view that are available outside of the process that builds it."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from relay.archive.catalog.catalog import Catalog
from relay.archive.catalog.generation_directories import begun_generations
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import CATALOG_NAME
from relay.view.generations.view_generations import made_generations
from relay.view.inspect.standing_stop import standing_stop
from relay.view.rules.mariadb.left_out import LeftOut
from relay.view.rules.settings import ViewSettings
from relay.view.stops.view_stop import ViewStop
from relay.view.translate.kept_left_out import kept_left_out
from relay.view.translate.wait_counts import WaitCounts, kept_counts
from relay.view.view_place import PlaceFinder, ViewPlace


class ViewFacts(NamedTuple):
    """`files` and `size_bytes` are the view's. `made` is the place up to which it is built; None: nothing is yet. `behind_bytes` is
    what the mirror contains beyond that. `waits` and `left_out` were counted some seconds ago; None: nothing is."""

    settings: ViewSettings
    files: int
    size_bytes: int
    made: ViewPlace | None
    behind_bytes: int
    stop: ViewStop | None
    waits: WaitCounts | None = None
    left_out: LeftOut | None = None


def view_facts(archive: Path, view: Path, settings: ViewSettings, places: PlaceFinder) -> ViewFacts:
    """Return the facts; `archive` is the source's directory, `view` the view's. Works beside a running relay. Blocking.

    Raises: CatalogUnreadable; PlaceUnknown; OSError; sqlite3.Error.
    """
    is_made = (view / CATALOG_NAME).exists()
    generations = made_generations(archive, view) if is_made else []
    files = [file for generation in generations for file in files_of(generation.directory)]
    made = places.end() if files else None
    return ViewFacts(
        settings,
        len(files),
        sum(file.end for file in files),
        made,
        _behind(archive, made),
        standing_stop(archive, view, settings.name, made) if is_made else None,
        kept_counts(view) if settings.dependencies != "serial" else None,
        kept_left_out(view),
    )


def files_of(directory: Path) -> list[ArchivedFile]:
    """Return the files of one archive directory. The end of the growing one is its size: the catalog gets it once a second. Blocking.

    Raises: CatalogUnreadable; OSError; sqlite3.Error.
    """
    catalog = Catalog.open_read_only(directory / CATALOG_NAME)
    try:
        files = catalog.files()
    finally:
        catalog.close()
    for file in files:
        with contextlib.suppress(FileNotFoundError):
            if not file.sealed:
                file.end = max(file.end, (directory / file.name).stat().st_size)
    return files


def _behind(archive: Path, made: ViewPlace | None) -> int:
    total = 0
    for number, directory in reversed(begun_generations(archive)):
        files = files_of(directory)
        if made is not None and number <= made.source_generation:
            place = _place_of(files, made.source.file) if number == made.source_generation else None
            if place is not None:
                total += max(files[place].end - made.source.offset, 0) + sum(file.end for file in files[place + 1 :])
            return total
        total += sum(file.end for file in files)
    return total


def _place_of(files: Sequence[ArchivedFile], name: str) -> int | None:
    return next((place for place, file in enumerate(files) if file.name == name), None)
