"""What a replica that asks by GTID is served: in which generation of the archive it starts, and how it goes on in the next.

A stream goes on where the files of a source ended and those of the next source begin: the replica gets an artificial Rotate
to the first file that is read there and that file's format description. What it was sent before is not sent again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from protocol.errors import Malformed
from protocol.kernel.gtid_filter import GtidSkip
from relay.archive.generation import Generation
from relay.archive.read.file_reads import STEP_BYTES
from relay.archive.read.file_snapshot import FileSnapshot
from relay.archive.storage.gtid_facts import GtidValue
from relay.downstream.gtid_filter.gtid_lookup import ArchivedGtids
from relay.downstream.gtid_filter.gtid_walk import GtidWalk, Jump
from relay.downstream.gtid_filter.stream_guide import StreamGuide


@dataclass(frozen=True, slots=True)
class GtidStart:
    """The stream: file `file` of `archive`, its format description as stored (None: nothing of the file is published), and
    the walk.

    first_is_skipped: `created` of the format description is to be 0. jump: from the end of the file's head to the first
    transaction that is sent. guide: what may come later. asked: what the replica asked for, for the next generation.
    """

    generation: Generation
    file: str
    format_description: bytes | None
    first_is_skipped: bool
    walk: GtidWalk | None
    jump: Jump | None
    guide: StreamGuide
    asked: "GtidRequest"


class GtidRequest(Protocol):
    """What a replica said that it has. Both methods are for a thread."""

    def start(self, series: Sequence[ArchivedGtids]) -> GtidStart | None:
        """Where it starts in these generations, oldest first; None: there is no file yet.

        Raises: PositionRefused; StillAwaited; OSError and Malformed for an archive that cannot be read.
        """

    def go_on(self, sent: GtidValue | None, walk: GtidWalk | None, archived: ArchivedGtids) -> GtidStart | None:
        """Where it goes on in the next generation, once it was sent all of the ones before it.

        sent: all that was executed by their end. walk: the one that was at work there. None, Raises: as `start`.
        """


def exact_jump(extent: FileSnapshot, jump: Jump | None, skip: GtidSkip, head_end: int) -> Jump | None:
    """The jump, up to the first event that is sent, or the published end; None: the first transaction is sent.

    NAME.gtx told the block of 64 KiB, so that no more than one has to be walked over. Raises: OSError; Malformed.
    """
    offset, passed = (jump.target, jump.transactions) if jump is not None else (head_end, 0)
    buffer = bytearray(STEP_BYTES)
    sending = False
    with extent.path.open("rb", buffering=0) as file:
        while offset < extent.end and not sending:
            file.seek(offset)
            size = file.readinto(memoryview(buffer)[: min(STEP_BYTES, extent.end - offset)]) or 0
            at = 0
            while at < size:
                try:
                    end = skip.next_range(buffer, at, size)
                except ValueError as error:
                    raise Malformed(f"{extent.name}: {error}, offset {offset}") from error
                sending = end > at and skip.sending
                if end == at or sending:
                    break
                at = end
            if at == 0 and not sending:
                raise Malformed(f"{extent.name} has no whole event at {offset}")
            offset += at
    passed += skip.skipped
    return Jump(head_end, offset, passed) if passed else None
