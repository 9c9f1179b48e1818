"""What a replica that asks by GTID reported that it has: from it the filter of its stream is made, in each generation anew.

A stream goes on where the files of a source ended and those of the next source begin: the replica gets an artificial Rotate
to the first file that is read there and that file's format description. What it was sent before is not sent again.
"""

from collections.abc import Sequence
from typing import Protocol

from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidPosition
from relay.archive.storage.gtid_facts import GtidValue
from relay.downstream.gtid_filter.gtid_filter import GtidFilter
from relay.downstream.gtid_filter.gtid_lookup import ArchivedGtids


class GtidRequest(Protocol):
    """What a replica reported that it has. All methods are for a thread."""

    def reported(self) -> GtidSet | GtidPosition:
        """What it has. Raises: PositionRefused where that cannot be read."""

    def start(self, series: Sequence[ArchivedGtids]) -> GtidFilter | None:
        """The filter for the generation, and the file of it, where it starts; None: there is no file yet.

        series: the generations, oldest first.
        Raises: PositionRefused; StillAwaited; OSError and Malformed for an archive that cannot be read.
        """

    def go_on(self, sent: GtidValue | None, before: GtidFilter | None, archived: ArchivedGtids) -> GtidFilter | None:
        """The filter for the next generation, once the replica was sent all of the ones before it.

        sent: all that was executed by their end. before: the filter there. None, Raises: as `start`.
        """
