"""The check whether a file may follow the archive's newest one, and the ledger's notes about it."""

from protocol.binlog.layout import FIRST_EVENT
from protocol.errors import Malformed
from protocol.position import binlog_number
from relay.archive.storage.archive_errors import ArchiveConflict


def check_file_sequence(newest: str | None, name: str) -> list[tuple[str, int, str]]:
    """Return what must be noted when the source starts `name` after `newest` (None: it is the first): kind, offset, text.

    Raises: ArchiveConflict (a number that does not increase, or no binlog's name).
    """
    try:
        number = binlog_number(name)
    except Malformed as error:
        raise ArchiveConflict(str(error), file=name, advice="The source must not send such a name.") from error
    if newest is None:
        return []
    newest_number = binlog_number(newest)
    if number <= newest_number:
        raise ArchiveConflict(
            f"the source starts {name}, the archive already holds {newest}",
            file=name,
            advice="The source was reset or is another one: give it an archive directory of its own.",
        )
    notes = []
    base, newest_base = name.rpartition(".")[0], newest.rpartition(".")[0]
    if base != newest_base:
        notes.append(("renamed", 0, f"The source's binlogs were {newest_base}.*, now {base}.*."))
    if number != newest_number + 1:
        missing = number - newest_number - 1
        text = (
            f"{missing} file(s) between {newest} and {name} are not held; nothing is served from before to after them."
        )
        notes.append(("gap", FIRST_EVENT, text))
    return notes
