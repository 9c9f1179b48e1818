"""Why and where a view cannot go on, as those who make it are told."""

from uuid import UUID

from protocol.errors import RelayError
from relay.view.rules.group import StopReason


class ViewStopped(RelayError):
    """The view cannot go on before what stands at `offset` of `file`; `group_stop`: where that ends."""

    file: str
    offset: int

    def __init__(self, file: str, offset: int, group_stop: int, reason: StopReason) -> None:
        super().__init__(reason.text, file=file, offset=offset)
        self.group_stop = group_stop
        self.reason = reason


class StopsOf:
    """Makes them, for one file of the view `view`."""

    def __init__(self, view: str, file: str) -> None:
        self._view = view
        self._file = file

    def stop(self, name: str, text: str, error: int, offset: int, size: int = 0) -> ViewStopped:
        """At [offset, offset + size). name, text, error: see StopReason."""
        reason = StopReason(name, text, error, f"binlog-relay view skip {self._view} leaves it out.")
        return ViewStopped(self._file, offset, offset + size, reason)

    def group_malformed(self, offset: int, size: int) -> ViewStopped:
        """A group to which nothing can be added."""
        text = "a GTID event is too short, or the status variables of a statement cannot be read: one passes their end"
        return self.stop("group_malformed", text, 0, offset, size)

    def uuid_in_use(self, uuid: UUID, offset: int) -> ViewStopped:
        """At `offset` GTIDs of the view's uuid begin to be the source's too, or the other way round. It cannot be skipped."""
        text = (
            f"the view gives numbers of {uuid}, and the source has GTIDs of this uuid of its own: replicas would take one transaction "
            "for another, and pass over it"
        )
        advice = "Make another [[view]] with another uuid, and seed its replicas anew."
        return ViewStopped(self._file, offset, offset, StopReason("uuid_in_use", text, 0, advice))

    def gtids_not_named(self, offset: int) -> ViewStopped:
        """From `offset` on the source's files no longer say which of its GTIDs were executed before. It cannot be skipped."""
        text = (
            "the source was started again without GTIDs, and its files from here on do not say which GTIDs were executed before: who "
            "is seeded behind this place would get those transactions a second time"
        )
        advice = "Make another [[view]] that starts at this file, and seed its replicas anew."
        return ViewStopped(self._file, offset, offset, StopReason("gtids_not_named", text, 0, advice))

    def without_gtid(self, offset: int, size: int) -> ViewStopped:
        """A group without a GTID of another source's."""
        text = (
            "another source is followed, and it wrote a transaction without a GTID: whether replicas of the view have it "
            "already is not known"
        )
        advice = (
            f"Look at it with mysqlbinlog: where replicas have it, or were given it by hand, binlog-relay view skip "
            f"{self._view} leaves it out. Or copy the data to the replicas anew, for a new [[view]] with a start behind it."
        )
        return ViewStopped(self._file, offset, offset + size, StopReason("source_changed", text, 0, advice))
