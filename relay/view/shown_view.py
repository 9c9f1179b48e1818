"""A view as people and monitors see it."""

from typing import Protocol

from protocol.position import Position
from relay.view.rules.mariadb.left_out import LeftOut
from relay.view.rules.settings import ViewSettings
from relay.view.stops.view_stop import ViewStop
from relay.view.translate.wait_counts import WaitCounts


class ViewProgress(Protocol):
    """The progress of a view."""

    @property
    def source(self) -> Position | None:
        """The position up to which the source's binlogs are in it; None: nothing is yet."""

    @property
    def source_generation(self) -> int | None:
        """The generation of the source's archive that `source` is in; None: nothing is built yet."""

    @property
    def needed(self) -> Position | None:
        """The position, in the same generation, from which the view is rebuilt after a crash: its bytes may not be on the disk yet.
        None: from its start."""

    @property
    def behind_bytes(self) -> int:
        """The archived bytes after that position."""

    @property
    def stop(self) -> ViewStop | None:
        """The reason why it is stopped; None: it continues."""

    @property
    def waits(self) -> WaitCounts | None:
        """The counts of transactions that wait for others; None: they are not counted."""

    @property
    def left_out(self) -> LeftOut | None:
        """The parts that replicas of a MariaDB's view do not get; None: not known, or the source is another."""


class ShownView(Protocol):
    """The view that a console shows."""

    @property
    def settings(self) -> ViewSettings:
        """The settings of the view."""

    @property
    def status(self) -> ViewProgress:
        """Its current progress."""
