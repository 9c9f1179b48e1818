"""A substitute for a view that is built: an existing archive."""

from dataclasses import dataclass, field

from protocol.position import Position
from relay.archive.archive import Archive
from relay.view.rules.settings import ViewSettings


@dataclass
class NoProgress:
    """The status of a view that is neither being built nor stopped."""

    source: Position | None = None
    behind_bytes: int = 0
    stop: None = None
    source_generation: int | None = None
    waits: None = None

    @property
    def needed(self) -> Position | None:
        """The position from which it is rebuilt after a crash."""
        return self.source


@dataclass
class ViewStandIn:
    """An open view. `follows` says whether it was begun."""

    archive: Archive
    settings: ViewSettings
    status: NoProgress = field(default_factory=NoProgress)
    follows: bool = False

    async def skip(self, file: str, offset: int, by: str) -> None:
        """Do nothing: there is nothing to skip."""
        raise AssertionError("it never stops")

    def begin(self) -> None:
        """Note that it would be built from here on."""
        self.follows = True

    async def close(self) -> None:
        """Close the archive."""
        await self.archive.close()
