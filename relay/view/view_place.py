"""A place that the source's binlogs and a view's have in common, and who finds such places."""

from typing import NamedTuple, Protocol

from protocol.errors import ExitCode, RelayError
from protocol.position import Position
from relay.archive.catalog.generation_directories import FIRST
from relay.view.generations.view_generations import qualified


class ViewPlace(NamedTuple):
    """The same place three times. source, view: boundaries of transactions. gno: the number of the newest GTID that the view
    assigned before it; 0: none. source_generation, generation: of the archive and of the view, whose files these are."""

    source: Position
    view: Position
    gno: int
    source_generation: int = FIRST
    generation: int = FIRST

    @property
    def source_text(self) -> str:
        """For people. After a change of source the name of a file alone may be that of several."""
        return _shown(self.source, self.source_generation)

    @property
    def view_text(self) -> str:
        """The same in the view."""
        return _shown(self.view, self.generation)


def _shown(position: Position, generation: int) -> str:
    return (
        str(position) if generation == FIRST else str(Position(qualified(generation, position.file), position.offset))
    )


class InsideTransaction(RelayError):
    """The position is inside of a transaction or of an event. before, after: the nearest places that are boundaries; None: it is
    not known yet where the transaction ends."""

    exit_code = ExitCode.FINDINGS

    def __init__(self, position: Position, before: ViewPlace, after: ViewPlace | None) -> None:
        super().__init__(f"{position} is inside a transaction")
        self.position = position
        self.before = before
        self.after = after


class PlaceUnknown(RelayError):
    """There is no such place in the view. `str()` says what there is instead: which files, what was purged, what is not made yet."""

    exit_code = ExitCode.FINDINGS


class PlaceFinder(Protocol):
    """Finds places of one view. All of it blocks, reads only, and works beside a running relay."""

    def of_source(self, position: Position) -> ViewPlace:
        """Raises: InsideTransaction; PlaceUnknown; OSError."""

    def of_view(self, position: Position) -> ViewPlace:
        """Raises: InsideTransaction; PlaceUnknown; OSError."""

    def of_gno(self, gno: int) -> ViewPlace:
        """The place behind the transaction with that number. Raises: PlaceUnknown; OSError."""

    def end(self) -> ViewPlace | None:
        """Up to where the view is made; None: nothing is. Raises: OSError."""
