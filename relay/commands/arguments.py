"""Converts the text of a filter into numbers."""

import difflib
from datetime import UTC, date, datetime
from typing import Final

from protocol.binlog.boundary import BoundaryType
from protocol.binlog.event_type import EventType
from protocol.errors import Malformed
from protocol.position import Position, binlog_number
from relay.commands.outcome import CommandFailed

_BOUNDARIES: Final = {
    "none": BoundaryType.NOT_DEFINED,
    "ignore": BoundaryType.IGNORE,
    "self": BoundaryType.SELF_CONTAINED,
    "start": BoundaryType.START,
    "inside": BoundaryType.INSIDE,
    "end": BoundaryType.END,
}


_DATE_DIGITS: Final = 8
_OFFSET_DIGITS: Final = 18


def event_type_code(text: str) -> int:
    """Return the code of an event type given by name, in any case, or by number. Raises: CommandFailed."""
    if text.isdecimal() and int(text) <= 255:
        return int(text)
    name = text.strip().upper().replace("-", "_").replace(" ", "_")
    member = EventType.__members__.get(name)
    if member is not None:
        return int(member)
    near = difflib.get_close_matches(name, EventType.__members__, n=3, cutoff=0.5)
    meant = ", ".join(item.capitalize() for item in near) or "Query, Xid, Table_map or a number"
    raise CommandFailed(f"--type {text}: there is no such event type. Did you mean {meant}?")


def boundary_code(text: str) -> int:
    """Return the code of a boundary type given by its first word. Raises: CommandFailed."""
    word = text.strip().lower().replace("_", " ").replace("-", " ").split(" ")[0]
    if word in _BOUNDARIES:
        return int(_BOUNDARIES[word])
    raise CommandFailed(f"--boundary {text}: write one of {', '.join(_BOUNDARIES)}.")


def timestamp(option: str, text: str) -> int:
    """Return the seconds since the epoch from ISO 8601 (UTC unless it names an offset) or a plain number. Raises: CommandFailed.

    Eight digits are a date if they can be one: as seconds they would be of 1971 at the latest, before any binlog.
    """
    if text.isdecimal() and (len(text) != _DATE_DIGITS or not _is_date(text)):
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        message = f"{option} {text}: write a time such as 2026-11-20T19:00:00 (UTC) or seconds since 1970."
        raise CommandFailed(message) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp())


def _is_date(digits: str) -> bool:
    try:
        date.fromisoformat(digits)
    except ValueError:
        return False
    return True


def binlog_place(option: str, text: str) -> Position:
    """Return a position given as FILE:POSITION. Raises: CommandFailed."""
    file, colon, offset = text.rpartition(":")
    try:
        if colon and offset.isascii() and offset.isdecimal() and len(offset) <= _OFFSET_DIGITS:
            binlog_number(file)
            return Position(file, int(offset))
    except Malformed:
        pass
    message = f"{option} {text}: write FILE:POSITION, such as mysql-bin.000042:4."
    raise CommandFailed(message)
