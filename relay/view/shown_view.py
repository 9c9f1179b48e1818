"""A view as people and monitors are shown it."""

from typing import Protocol

from protocol.position import Position
from relay.view.rules.mariadb.left_out import LeftOut
from relay.view.rules.settings import ViewSettings
from relay.view.stops.view_stop import ViewStop
from relay.view.translate.wait_counts import WaitCounts


class ViewProgress(Protocol):
    """How far a view has come."""

    @property
    def source(self) -> Position | None:
        """Up to where the source's binlogs are in it; None: nothing yet."""

    @property
    def source_generation(self) -> int | None:
        """Of the source's archive, that `source` is of; None: nothing yet."""

    @property
    def needed(self) -> Position | None:
        """From where on the view is made again after a crash, of the same generation: what is made may not be on the disk yet.
        None: from its start on."""

    @property
    def behind_bytes(self) -> int:
        """What is archived behind that."""

    @property
    def stop(self) -> ViewStop | None:
        """None: it goes on."""

    @property
    def waits(self) -> WaitCounts | None:
        """Which transactions wait for which; None: they are not looked at."""

    @property
    def left_out(self) -> LeftOut | None:
        """What replicas of a MariaDB's view do not get; None: it is not known, or another source's."""


class ShownView(Protocol):
    """The view that a console speaks of."""

    @property
    def settings(self) -> ViewSettings:
        """What it is to be."""

    @property
    def status(self) -> ViewProgress:
        """As it is now."""
