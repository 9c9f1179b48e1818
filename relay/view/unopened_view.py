"""A view of relay.toml that is not opened, as people see it: the reason, and when the next attempt is made."""

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
    """The progress of an unopened view. `source`, in `source_generation`, is where its files ended at the last look; None: unknown."""

    stop: ViewStop
    source: Position | None = None
    source_generation: int | None = None
    behind_bytes: int = 0
    waits: WaitCounts | None = None
    left_out: LeftOut | None = None

    @property
    def needed(self) -> Position | None:
        """No position, as nothing is built."""
        return self.source


@dataclass(slots=True)
class UnopenedView:
    """A view that could not be opened. `settings` are those that relay.toml says. `why` is a sentence, `advice` the next step, which
    may be empty. `made` is the position in the source's archive up to which its files are built, with the generation; None: it is not
    known. `next_try` is a Unix time; None: there is none. `was_tried`: the first attempt is over.
    """

    settings: ViewSettings
    why: str
    advice: str = ""
    next_try: float | None = None
    made: tuple[Position, int] | None = None
    was_tried: bool = False
    is_refused: bool = False
    """True if only a restart of the relay can help."""

    def could_not(self, why: str, advice: str, next_try: float | None) -> None:
        """Note that an attempt to open it failed; `next_try` None: there is no other before the relay is restarted."""
        self.why, self.advice, self.next_try, self.is_refused = why, advice, next_try, next_try is None

    @property
    def told(self) -> str:
        """Return the reason for a client that wants to log in, in one or two sentences."""
        return f"{self.why} {self._when}".rstrip()

    @property
    def status(self) -> UnopenedProgress:
        """The progress of a view that is stopped."""
        when = "Then restart the relay." if self.is_refused else self._when
        reason = StopReason(NOT_SERVED, self.why, 0, f"{self.advice} {when}".strip())
        source, generation = self.made if self.made is not None else (None, None)
        return UnopenedProgress(ViewStop("", 0, 0, reason), source, generation)

    @property
    def _when(self) -> str:
        if self.next_try is None:
            return ""
        return f"It is tried again by itself, next at {datetime.fromtimestamp(self.next_try, UTC):%H:%M:%S} UTC."
