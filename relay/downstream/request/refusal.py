"""The message that a replica's operator reads when a dump request is not served.

ERR 1236 stops a replica until an operator acts, so the file, the position and what to use instead come first; ERR 1105 makes it try
again by itself.
"""

from typing import Final

from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import ErrorCode, PositionRefused
from protocol.printable import cut_text, printable
from relay.archive.storage.archive_errors import ArchiveDamaged

# The servers keep an error's text in a field of about 512 bytes and put words of their own before it.
MAX_TEXT_BYTES: Final = 480
INTERNAL_ERROR: Final = "binlog-relay has an internal error, see its log"
"""The text that a replica gets for an internal fault."""
_MAX_NAME_BYTES: Final = 100


def refusal(text: str, number: int = ErrorCode.ER_MASTER_FATAL_ERROR_READING_BINLOG) -> PositionRefused:
    """Return the error for a request that is not served; `text` is cut to the size of a server's error field."""
    return PositionRefused(number, cut_text(text, MAX_TEXT_BYTES).decode())


def damage_refusal(error: ArchiveDamaged, advice: str) -> PositionRefused:
    """Return ERR 1236 for a stream that came to a damaged place, or would begin there. advice: the generation's advice for it."""
    place = f"{shown_name(error.file or '')}:{error.offset}"
    sent = (
        f"All before {error.boundary} of this file is good; nothing behind it is sent. "
        if error.boundary > FIRST_EVENT
        else ""
    )
    return refusal(f"binlog-relay's archive is damaged at {place}: {error.what}. {sent}{advice}")


class SetUpMissing(PositionRefused):
    """ERR 1236 because a replica did not send its set-up before the request: it may have sent it on a connection that broke."""


def set_up_missing(text: str) -> SetUpMissing:
    """Return the `refusal` for a missing set-up."""
    refused = refusal(text)
    return SetUpMissing(refused.number, refused.what)


def shown_name(file: str) -> str:
    """Return a file name as a message shows it: bounded and printable, whatever the client sent."""
    return printable(file, _MAX_NAME_BYTES)
