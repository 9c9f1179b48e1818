"""The sentence that a replica's operator reads when a dump request is not served.

ERR 1236 stops a replica until a human acts, so the file, the position and what to use instead come first; ERR 1105
makes it try again by itself.
"""

from typing import Final

from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import ErrorCode, PositionRefused
from protocol.printable import cut_text, printable
from relay.archive.storage.archive_errors import ArchiveDamaged

# The servers keep an error's text in a field of about 512 bytes and put words of their own before it.
MAX_TEXT_BYTES: Final = 480
INTERNAL_ERROR: Final = "binlog-relay has an internal error, see its log"
"""What a replica is told of a fault of ours."""
_MAX_NAME_BYTES: Final = 100


def refusal(text: str, number: int = ErrorCode.ER_MASTER_FATAL_ERROR_READING_BINLOG) -> PositionRefused:
    """The error for a request that is not served; `text` is cut to what a server's error field holds."""
    return PositionRefused(number, cut_text(text, MAX_TEXT_BYTES).decode())


def damage_refusal(error: ArchiveDamaged, advice: str) -> PositionRefused:
    """ERR 1236 for a stream that came to a damaged place, or would begin there. advice: of the generation, what to do about it."""
    place = f"{shown_name(error.file or '')}:{error.offset}"
    sent = (
        f"All before {error.boundary} of this file is good; nothing behind it is sent. "
        if error.boundary > FIRST_EVENT
        else ""
    )
    return refusal(f"binlog-relay's archive is damaged at {place}: {error.what}. {sent}{advice}")


class SetUpMissing(PositionRefused):
    """ERR 1236 for want of what a replica says before its request: it may have said it on a connection that broke."""


def set_up_missing(text: str) -> SetUpMissing:
    """As `refusal`, for want of the set-up."""
    refused = refusal(text)
    return SetUpMissing(refused.number, refused.what)


def shown_name(file: str) -> str:
    """A file name as a message shows it: whatever a client sent, bounded and printable."""
    return printable(file, _MAX_NAME_BYTES)
