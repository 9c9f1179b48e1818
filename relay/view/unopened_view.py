"""A view of relay.toml that is not opened: why, and when that is tried again. What people are shown of it."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple

from protocol.position import Position
from relay.view.rules.mariadb.left_out import LeftOut
from relay.view.rules.settings import ViewSettings
from relay.view.stops.stop_reason import StopReason
from relay.view.stops.view_stop import ViewStop
from relay.view.translate.wait_counts import WaitCounts

NOT_SERVED: Final = "view_not_served"


class UnopenedProgress(NamedTuple):
    """source: up to where its files were made from when somebody looked, and source_generation; None: that is not known."""

    stop: ViewStop
    source: Position | None = None
    source_generation: int | None = None
    behind_bytes: int = 0
    waits: WaitCounts | None = None
    left_out: LeftOut | None = None

    @property
    def needed(self) -> Position | None:
        """Nothing is made of it."""
        return self.source


@dataclass(slots=True)
class UnopenedView:
    """settings: as far as relay.toml says them. why: a sentence. advice: the next step, may be empty. made: up to where its files
    are made, of the source's archive, with the generation; None: it is not known. next_try: Unix time; None: there is none.
    was_tried: whether the first attempt is over.
    """

    settings: ViewSettings
    why: str
    advice: str = ""
    next_try: float | None = None
    made: tuple[Position, int] | None = None
    was_tried: bool = False
    is_refused: bool = False
    """Whether only a restart of the relay can help."""

    def could_not(self, why: str, advice: str, next_try: float | None) -> None:
        """An attempt to open it failed. next_try: None: there is no other before the relay is restarted."""
        self.why, self.advice, self.next_try, self.is_refused = why, advice, next_try, next_try is None

    @property
    def told(self) -> str:
        """Why, to whoever wants to log in; one or two sentences."""
        return f"{self.why} {self._when}".rstrip()

    @property
    def status(self) -> UnopenedProgress:
        """As of a view that stands still."""
        when = "Then restart the relay." if self.is_refused else self._when
        reason = StopReason(NOT_SERVED, self.why, 0, f"{self.advice} {when}".strip())
        source, generation = self.made if self.made is not None else (None, None)
        return UnopenedProgress(ViewStop("", 0, 0, reason), source, generation)

    @property
    def _when(self) -> str:
        if self.next_try is None:
            return ""
        return f"It is tried again by itself, next at {datetime.fromtimestamp(self.next_try, UTC):%H:%M:%S} UTC."
