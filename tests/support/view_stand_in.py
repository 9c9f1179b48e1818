"""What stands in the place of a view that is made: an archive that is there already."""

from dataclasses import dataclass, field

from protocol.position import Position
from relay.archive.archive import Archive
from relay.view.rules.settings import ViewSettings


@dataclass
class NoProgress:
    """The status of a view that is neither made nor stopped."""

    source: Position | None = None
    behind_bytes: int = 0
    stop: None = None
    source_generation: int | None = None
    waits: None = None

    @property
    def needed(self) -> Position | None:
        """From where on it is made again after a crash."""
        return self.source


@dataclass
class ViewStandIn:
    """An open view. follows: whether it was begun."""

    archive: Archive
    settings: ViewSettings
    status: NoProgress = field(default_factory=NoProgress)
    follows: bool = False

    async def skip(self, file: str, offset: int, by: str) -> None:
        """There is nothing to skip."""
        raise AssertionError("it never stops")

    def begin(self) -> None:
        """It would be made from here on."""
        self.follows = True

    async def close(self) -> None:
        """Closes the archive."""
        await self.archive.close()
