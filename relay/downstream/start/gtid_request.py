"""The GTIDs that a replica reported: the filter of its stream is built from them, again in each generation.

At the end of a source's files a stream continues at the beginning of the next source's: the replica gets an artificial Rotate to the
first file that is read there and that file's format description. What it was sent before is not sent again.
"""

from collections.abc import Sequence
from typing import Protocol

from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidPosition
from relay.archive.storage.gtid_facts import GtidValue
from relay.downstream.gtid_filter.gtid_filter import GtidFilter
from relay.downstream.gtid_filter.gtid_lookup import ArchivedGtids


class GtidRequest(Protocol):
    """The GTIDs that a replica reported. All methods are for a thread."""

    def reported(self) -> GtidSet | GtidPosition:
        """Return the GTIDs that it has. Raises: PositionRefused if they cannot be read."""

    def start(self, series: Sequence[ArchivedGtids]) -> GtidFilter | None:
        """Return the filter for the generation and its file where the stream starts; None: there is no file yet.

        series: the generations, oldest first. Raises: PositionRefused; StillAwaited; OSError and Malformed for an archive that cannot
        be read.
        """

    def go_on(self, sent: GtidValue | None, before: GtidFilter | None, archived: ArchivedGtids) -> GtidFilter | None:
        """Return the filter for the next generation, once the replica was sent all of the ones before it.

        sent: all that was executed by their end. before: the filter there. None, Raises: as `start`.
        """
