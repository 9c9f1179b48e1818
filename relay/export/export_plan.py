"""The plan of an export: which parts of which files, in which order, and what is missing where one does not lead to the next."""

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import Malformed
from protocol.position import Position
from relay.archive.catalog.catalog import Catalog, CatalogUnreadable
from relay.archive.catalog.generation_directories import FIRST, generation_path
from relay.archive.gaps.accepted_gap import AcceptedGap, GapUnreadable, gap_before
from relay.archive.read.file_snapshot import FileSnapshot
from relay.archive.storage.files import CATALOG_NAME, FileLayer, StoredFile
from relay.archive.storage.origin import Origin
from relay.binlog_file.head import read_start
from relay.binlog_tables.plan.overlap import Overlap
from relay.binlog_tables.plan.series_files import find_files
from relay.binlog_tables.plan.store import LocalStore
from relay.export.export_errors import ExportRefused
from relay.export.export_place import ExportPlace
from relay.export.readable_files import ReadableFile

_ACROSS: Final = "With --across-gaps both sides are exported, and this is listed."


@dataclass(frozen=True, slots=True)
class ExportPiece:
    """A part [start, stop) of a file, both between two transactions, that becomes the binlog `name`. `repeated` are parts of it, in
    order, that an earlier source's files already contain and that are left out."""

    source: ReadableFile
    start: int
    stop: int
    name: str
    repeated: tuple[tuple[int, int], ...] = ()

    @property
    def ranges(self) -> Iterator[tuple[int, int]]:
        """Yield the ranges of it that are exported."""
        at = self.start
        for start, stop in self.repeated:
            if at < start:
                yield at, start
            at = stop
        if at < self.stop:
            yield at, self.stop


@dataclass(frozen=True, slots=True)
class ExportSeam:
    """A place where one exported file does not simply lead to the next. `kind` is accepted_gap, missing_files, cut_transaction,
    damaged_end or change_of_source. With `leads_on` nothing is missing there. `before` and `after` are the places on both sides;
    `text` is whole sentences."""

    kind: str
    leads_on: bool
    before: Position
    after: Position
    text: str


@dataclass(frozen=True, slots=True)
class ExportPlan:
    """The pieces in the order in which they are applied, and the seams between them."""

    pieces: tuple[ExportPiece, ...]
    seams: tuple[ExportSeam, ...]


def plan_export(
    directory: Path,
    files: Sequence[ReadableFile],
    begin: ExportPlace,
    end: ExportPlace,
    layer: FileLayer,
    *,
    across_gaps: bool,
) -> ExportPlan:
    """Return the plan for the stretch between two places. With `across_gaps` it may cross missing parts. Blocking.

    Raises: ExportRefused; CatalogUnreadable; OSError.
    """
    if (begin.number, begin.offset) >= (end.number, end.offset):
        first, last = files[begin.number], files[end.number]
        raise ExportRefused(
            f"Nothing lies between {first.name}:{begin.offset} and {last.name}:{end.offset}: the end is not behind the beginning."
        )
    chosen = files[begin.number : end.number + 1]
    pieces = []
    for number, file in enumerate(chosen, begin.number):
        start = begin.offset if number == begin.number else FIRST_EVENT
        stop = end.offset if number == end.number else file.stop
        pieces.append(ExportPiece(file, start, stop, file.name))
    seams = []
    for number, (file, following) in enumerate(pairwise(chosen)):
        seam = _seam(directory, file, following)
        if seam is None:
            continue
        if not seam.leads_on and not across_gaps:
            raise ExportRefused(f"{seam.text} {_ACROSS}")
        if seam.kind == "accepted_gap":
            pieces = _up_to_fork(pieces, number, seam.before)
        seams.append(seam)
    if chosen[0].generation != chosen[-1].generation:
        pieces = _without_repeated(directory, pieces, chosen, layer)
    pieces = [piece for piece in pieces if piece.start < piece.stop and not _is_head(piece, layer)]
    if not pieces:
        raise ExportRefused("There is no transaction in this stretch. Nothing was written.")
    return ExportPlan(_named(pieces), tuple(seams))


def _is_head(piece: ExportPiece, layer: FileLayer) -> bool:
    """Return whether the piece ends before its file's first transaction. Raises: ExportRefused; OSError."""
    source = piece.source
    if piece.start != FIRST_EVENT:
        return False
    try:
        head = FileSnapshot(source.name, source.path, source.stop, bool(source.file.checksum), layer=layer).head()
    except Malformed as error:
        raise ExportRefused(
            f"The head of {source.name} cannot be read: {error}. Run 'archive verify --deep'."
        ) from error
    except FileNotFoundError:
        return False  # Its reader reports it
    return piece.stop <= head.end


def _seam(directory: Path, file: ReadableFile, following: ReadableFile) -> ExportSeam | None:
    before = Position(file.name, file.stop)
    after = Position(following.name, FIRST_EVENT)
    if file.generation != following.generation:
        return _between_generations(directory, following, before, after)
    if file.file.damaged:
        text = f"{before}: what stands behind it in this file is damaged and cannot be read: 'archive repair' fetches it again."
        return ExportSeam("damaged_end", False, before, after, text)
    if following.file.number != file.file.number + 1:
        missing = following.file.number - file.file.number - 1
        text = f"{missing} file(s) between {file.name} and {following.name} are not in the archive."
        return ExportSeam("missing_files", False, before, after, text)
    if file.file.cut:
        text = (
            f"{before}: the source crashed inside the transaction that begins there and never ended it. It is left out, as each "
            "server leaves it out."
        )
        return ExportSeam("cut_transaction", True, before, after, text)
    return None


def _between_generations(directory: Path, following: ReadableFile, before: Position, after: Position) -> ExportSeam:
    path = generation_path(directory, following.generation)
    try:
        gap = gap_before(path) if following.generation != FIRST else None
    except GapUnreadable as error:
        text = f"What is missing between {before} and {after} is not known: {error}."
        return ExportSeam("accepted_gap", False, before, after, text)
    if gap is not None:
        return ExportSeam("accepted_gap", gap.is_whole and not gap.has_lost, gap.fork, gap.to, _gap_text(gap))
    origin = _origin(path)
    if origin is not None and origin.state:
        text = f"Behind {before} another source goes on with {after}; what its files repeat is left out, by GTID."
        return ExportSeam("change_of_source", True, before, after, text)
    text = (
        f"Behind {before} another source goes on with {after}. Without GTIDs it is not known which of its transactions the files "
        "before it hold already."
    )
    return ExportSeam("change_of_source", False, before, after, text)


def _gap_text(gap: AcceptedGap) -> str:
    return f"There is an accepted gap in the archive. {gap.text}"


def _origin(path: Path) -> Origin | None:
    try:
        catalog = Catalog.open_read_only(path / CATALOG_NAME)
    except (CatalogUnreadable, sqlite3.Error):
        return None
    try:
        return catalog.origin()
    finally:
        catalog.close()


def _up_to_fork(pieces: list[ExportPiece], number: int, fork: Position) -> list[ExportPiece]:
    """Return the pieces without what the source has lost: the transactions after the gap do not follow it. Raises: ExportRefused."""
    generation = pieces[number].source.generation
    found = []
    for at, piece in enumerate(pieces):
        if at <= number and piece.source.generation == generation:
            place = Position(piece.source.name, piece.stop)
            if place > fork:
                stop = fork.offset if piece.source.name == fork.file else piece.start
                if piece is pieces[0] and stop <= piece.start:
                    raise ExportRefused(
                        f"{piece.source.name}:{piece.start} lies behind {fork}, in what the source has lost, and what stands behind "
                        f"the gap does not follow it. Begin behind the gap, or end before it."
                    )
                piece = replace(piece, stop=max(stop, piece.start))
        found.append(piece)
    return found


def _without_repeated(
    directory: Path, pieces: list[ExportPiece], chosen: Sequence[ReadableFile], layer: FileLayer
) -> list[ExportPiece]:
    store = LocalStore()
    paths = {str(file.path) for file in chosen}
    audited = [file for file in find_files(store, str(directory)) if file.path in paths]
    overlap = Overlap(store, audited, held=True)
    by_path = {file.path: file for file in audited}
    found = []
    for piece in pieces:
        path = str(piece.source.path)
        if piece.source.generation != chosen[0].generation and path in by_path:
            with StoredFile.open(layer, piece.source.path) as stored:
                format_event = read_start(stored).event
                spans = overlap.spans(by_path[path], format_event, stored, piece.start, piece.stop)
            piece = replace(piece, repeated=spans)
        found.append(piece)
    return found


def _named(pieces: list[ExportPiece]) -> tuple[ExportPiece, ...]:
    """Return pieces with the source's names if a shell sorts them in the order of the pieces; else with prefixes that give this
    order."""
    names = [piece.name for piece in pieces]
    if len({piece.source.generation for piece in pieces}) > 1:
        names = [f"g{piece.source.generation:04d}.{piece.name}" for piece in pieces]
    if sorted(set(names)) != names:
        names = [f"{number:06d}.{name}" for number, name in enumerate(names, 1)]
    return tuple(replace(piece, name=name) for piece, name in zip(pieces, names, strict=True))
