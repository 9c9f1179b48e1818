"""A place that the source's binlogs and a view's have in common, and the protocol for finding such places."""

from typing import NamedTuple, Protocol

from protocol.errors import ExitCode, RelayError
from protocol.position import Position
from relay.archive.catalog.generation_directories import FIRST
from relay.view.generations.view_generations import qualified


class ViewPlace(NamedTuple):
    """The same place three times. `source` and `view` are transaction boundaries, in the files of `source_generation` of the archive
    and of `generation` of the view. `gno` is the number of the newest GTID that the view assigned before it; 0: there is none."""

    source: Position
    view: Position
    gno: int
    source_generation: int = FIRST
    generation: int = FIRST

    @property
    def source_text(self) -> str:
        """The source's position for people. After a change of source several files may have the same name."""
        return _shown(self.source, self.source_generation)

    @property
    def view_text(self) -> str:
        """The view's position for people."""
        return _shown(self.view, self.generation)


def _shown(position: Position, generation: int) -> str:
    return (
        str(position) if generation == FIRST else str(Position(qualified(generation, position.file), position.offset))
    )


class InsideTransaction(RelayError):
    """The position is inside a transaction or an event. `before` and `after` are the nearest boundaries; None: it is not known yet
    where the transaction ends."""

    exit_code = ExitCode.FINDINGS

    def __init__(self, position: Position, before: ViewPlace, after: ViewPlace | None) -> None:
        super().__init__(f"{position} is inside a transaction")
        self.position = position
        self.before = before
        self.after = after


class PlaceUnknown(RelayError):
    """There is no such place in the view. `str()` says what exists instead: which files, what was purged, what is not built yet."""

    exit_code = ExitCode.FINDINGS


class PlaceFinder(Protocol):
    """Finds places of one view. All methods block, only read, and work beside a running relay."""

    def of_source(self, position: Position) -> ViewPlace:
        """Return the place of the source's `position`. Raises: InsideTransaction; PlaceUnknown; OSError."""

    def of_view(self, position: Position) -> ViewPlace:
        """Return the place of the view's `position`. Raises: InsideTransaction; PlaceUnknown; OSError."""

    def of_gno(self, gno: int) -> ViewPlace:
        """Return the place after the transaction with that number. Raises: PlaceUnknown; OSError."""

    def end(self) -> ViewPlace | None:
        """Return the place up to which the view is built; None: nothing is. Raises: OSError."""
