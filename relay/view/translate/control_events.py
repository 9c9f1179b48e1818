"""The events between the transactions of a file: its head, and events that belong to no transaction."""

from collections.abc import Callable, Iterator
from typing import Final

from protocol.binlog.event_type import EventType
from protocol.binlog.header import FLAG_IGNORABLE, FLAG_IN_USE
from protocol.binlog.layout import FIRST_EVENT, HEADER, HEADER_SIZE
from protocol.errors import Malformed
from protocol.gtid.codec import decode_gtid_set
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import decode_gtid_list
from protocol.kernel import codes
from protocol.views.view_copy import ViewCopy
from relay.view.rules.group import New
from relay.view.rules.mariadb.mariadb_rules import MariadbRules
from relay.view.rules.settings import FIRST_GNO, ViewSettings
from relay.view.stops import source_stops, transaction_stops
from relay.view.translate.file_head import assigned, checksum_size, described, format_body, previous_body
from relay.view.translate.made_bytes import MARKER_BITS, MadeBytes
from relay.view.translate.source_window import SourceWindow

ENDS_FILE: Final = frozenset((EventType.ROTATE, EventType.STOP))
"""The types of events after which no transaction follows in their file."""


_OF_MARIADB: Final = frozenset((EventType.GTID_LIST, EventType.BINLOG_CHECKPOINT, EventType.START_ENCRYPTION))


class ControlEvents:
    """Writes these events. `assigns`: the view assigns GTIDs of its own. `rules` are those of a MariaDB source.

    All methods raise ViewStopped, ArchiveDamaged and OSError.
    """

    def __init__(
        self,
        kernel: ViewCopy,
        source: SourceWindow,
        made: MadeBytes,
        settings: ViewSettings,
        assigns: bool,
        rules: MariadbRules | None = None,
    ) -> None:
        self._kernel = kernel
        self._source = source
        self._made = made
        self._settings = settings
        self._assigns = assigns
        self._rules = rules

    def head(self, event: bytes, before: GtidSet, is_sealed: Callable[[], bool]) -> Iterator[None]:
        """Write the view's format description in place of the source's, `event`, and the executed GTIDs. `before` are those of the
        source's transactions in this file, where the view begins inside it."""
        source, known = self._source, described(event)
        timestamp, _, server_id, size, _, flags = HEADER.unpack_from(event)
        body = format_body(event, self._settings)
        format = New(EventType.FORMAT_DESCRIPTION, flags & ~FLAG_IN_USE, timestamp, server_id, body)
        yield from self._made.event(self._kernel, format, codes.IGNORE, trailer=checksum_size(known, self._settings))
        source.offset = max(source.offset, FIRST_EVENT + size)
        # The source's own Previous_gtids is here if it has one; the numbers that the view assigned are added.
        while source.count < HEADER_SIZE:
            if source.more():
                continue
            if is_sealed():
                break
            yield
        if self._rules is not None:
            while not self.read_list(FIRST_EVENT + size) and not is_sealed():
                yield
            own = self._rules.executed()
        else:
            own = before | self._named()
        self._kernel.gtids_named = self._kernel.gtids_named or bool(before)
        if self._assigns and self._rules is None:
            uuid = self._settings.uuid
            if uuid.bytes in own.intervals_by_key():
                if self._kernel.next_gno != FIRST_GNO:
                    raise source.stopped(source_stops.uuid_in_use(uuid))
                self._kernel.uuid_used = True
            own |= assigned(self._settings.uuid.bytes, self._kernel.next_gno)
        set_body = previous_body(own, known.server_version, self._settings)
        if set_body is not None:
            previous = New(EventType.PREVIOUS_GTIDS, FLAG_IGNORABLE, timestamp, server_id, set_body)
            yield from self._made.event(self._kernel, previous, codes.SELF_CONTAINED)

    def _named(self) -> GtidSet:
        """Return what the source executed before the file, by its own list. Raises: ViewStopped where the list is missing."""
        source, kernel = self._source, self._kernel
        kind = source.buffer[source.lo + codes.EVENT_TYPE_AT] if source.count >= HEADER_SIZE else EventType.ROTATE
        if kind == EventType.PREVIOUS_GTIDS:
            kernel.gtids_named = True
        elif self._names_missing and kind not in ENDS_FILE:
            kernel.gtids_named = False
            raise source.stopped(source_stops.executed_gtids_missing())
        return self._executed()

    def read_list(self, offset: int) -> bool:
        """Pass the file's Gtid_list to the rules of a MariaDB source; `offset` is the end of the format description.

        Return False if it is not there yet.
        """
        source, rules = self._source, self._rules
        while offset + HEADER_SIZE <= source.end:
            kind = source.kind_at(offset)
            if kind not in _OF_MARIADB:
                return True
            event = source.read_event(offset)
            if kind == EventType.GTID_LIST and rules is not None:
                try:
                    rules.executed_before(decode_gtid_list(event[HEADER_SIZE : len(event) - source.trailer]))
                except Malformed as error:
                    text = f"the source's Gtid_list cannot be read: {error}"
                    raise source.stopped(source_stops.format_unsupported(text), offset) from error
                return True
            offset += len(event)
        return rules is None

    @property
    def _names_missing(self) -> bool:
        """True if a head without them loses GTIDs that are in the view. If they have its own uuid, the view stops before the first
        number that it would assign twice."""
        return self._kernel.gtids_named and not self._kernel.uuid_used and self._settings.gtids != "anonymous"

    def _executed(self) -> GtidSet:
        """Return the GTIDs of the next events, which are Previous_gtids."""
        source = self._source
        found = GtidSet()
        while (
            source.count >= HEADER_SIZE and source.buffer[source.lo + codes.EVENT_TYPE_AT] == EventType.PREVIOUS_GTIDS
        ):
            event = source.read_event(source.offset)
            size = len(event)
            try:
                found |= decode_gtid_set(event[HEADER_SIZE : size - source.trailer])
            except Malformed as error:
                text = f"the source's Previous_gtids cannot be read: {error}"
                raise source.stopped(source_stops.format_unsupported(text)) from error
            source.drop(size)
            if not source.count:
                break
        return found

    def between_groups(self) -> Iterator[None]:
        """Write the next event, which the kernel measured."""
        source = self._source
        timestamp, kind, server_id, _, _, flags = HEADER.unpack_from(source.buffer, source.lo)
        size = self._kernel.group_stop - source.lo
        if kind in _OF_MARIADB or (kind == EventType.STOP and self._rules is not None):
            pass  # no replica needs them
        elif kind in ENDS_FILE:  # copied
            marker = (flags & MARKER_BITS) >> codes.BOUNDARY_SHIFT
            yield from self._made.event(self._kernel, New(kind, flags, timestamp, server_id, source.body(size)), marker)
        elif kind == EventType.INCIDENT:
            raise source.stopped(transaction_stops.incident().reason, source.offset, source.offset + size)
        elif kind not in (EventType.PREVIOUS_GTIDS, EventType.FORMAT_DESCRIPTION) and not flags & FLAG_IGNORABLE:
            reason = transaction_stops.event_unsupported(kind, error=0).reason
            raise source.stopped(reason, source.offset, source.offset + size)
        source.drop(size)
