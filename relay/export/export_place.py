"""The beginning and the end of an export: arguments become places between two transactions of the archive."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

from protocol.errors import Malformed
from protocol.gtid.mariadb import DomainGtid
from protocol.gtid.mysql_gtid import MysqlGtid
from protocol.position import binlog_number
from relay.archive.read.position_check import IndexUnusable, PositionCheck, Verdict, check_offset
from relay.archive.storage.files import FileLayer
from relay.archive_inspection.transaction_search import TransactionPlace, find_gtid, find_time
from relay.binlog_file.binlog_scan import Unreadable
from relay.commands.arguments import timestamp
from relay.commands.binlogs.positions_command import Standing, report_position
from relay.export.export_errors import ExportDamaged, ExportRefused
from relay.export.readable_files import ReadableFile

_NAMED: Final = re.compile(r"g([0-9]{4,9})[./](.+)")
_OFFSET_DIGITS: Final = 18
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_FORMS: Final = (
    "Write FILE:POSITION (mysql-bin.000042:4711), a GTID (uuid:23, uuid:tag:23 or 0-1-23) "
    "or a time (2026-11-20T19:00:00, UTC, or seconds since 1970)"
)


@dataclass(frozen=True, slots=True)
class ExportPlace:
    """A transaction boundary: `number` is the file's index in the list of readable files."""

    number: int
    offset: int


@dataclass(frozen=True, slots=True)
class _FilePosition:
    generation: int | None
    file: str
    offset: int


_Asked = _FilePosition | MysqlGtid | DomainGtid | int
"""The parsed argument; a number is a time."""


class PlaceSearch:
    """A search for places in the files of the archive in `directory`, all of `files`. Blocking.

    All methods raise: ExportRefused; CommandFailed for a time that cannot be read; CatalogUnreadable; OSError.
    """

    def __init__(self, files: Sequence[ReadableFile], layer: FileLayer) -> None:
        self._files = files
        self._layer = layer

    def beginning(self, option: str, text: str | None) -> ExportPlace:
        """Return the place at which the first exported transaction starts. None means the oldest place."""
        if text is None:
            return ExportPlace(0, 4)
        asked = _parsed(option, text)
        if isinstance(asked, _FilePosition):
            return self._position(option, asked)
        found = self._transaction(asked)
        if found is None:
            raise ExportRefused(self._not_there(option, text, asked))
        number, place = found
        return ExportPlace(number, place.start)

    def end(self, option: str, text: str | None, *, included: bool) -> ExportPlace:
        """Return the place up to which is exported. With `included` it is after the transaction with the GTID. None means the archive's
        end."""
        if text is None:
            return self._last()
        asked = _parsed(option, text)
        if isinstance(asked, _FilePosition):
            return self._position(option, asked)
        found = self._transaction(asked)
        if found is None:
            if isinstance(asked, int):
                return self._last()
            raise ExportRefused(self._not_there(option, text, asked))
        number, place = found
        return ExportPlace(number, place.end if included and not isinstance(asked, int) else place.start)

    def _last(self) -> ExportPlace:
        return ExportPlace(len(self._files) - 1, self._files[-1].stop)

    def _transaction(self, asked: MysqlGtid | DomainGtid | int) -> tuple[int, TransactionPlace] | None:
        for directory in self._directories():
            place = find_time(directory, asked) if isinstance(asked, int) else find_gtid(directory, asked)
            if place is None:
                continue
            for number, file in enumerate(self._files):
                if file.path == directory / place.file and place.end <= file.stop:
                    return number, place
        return None

    def _directories(self) -> list[Path]:
        return list(dict.fromkeys(file.path.parent for file in self._files))

    def _not_there(self, option: str, text: str, asked: MysqlGtid | DomainGtid | int) -> str:
        first, last = self._files[0], self._files[-1]
        holds = f"It holds {first.name} to {last.name}:{last.stop}"
        if isinstance(asked, int):
            return f"{option} {text}: no transaction of the archive began at that time or later. {holds}."
        return f"{option} {text}: the archive does not hold this transaction. {holds}."

    # --- file and position ---------------------------------------------------------------------------------------------

    def _position(self, option: str, asked: _FilePosition) -> ExportPlace:
        numbers = [
            number
            for number, file in enumerate(self._files)
            if file.name == asked.file and asked.generation in (None, file.generation)
        ]
        place = f"{option} {asked.file}:{asked.offset}"
        if not numbers:
            names = f"{self._files[0].name} to {self._files[-1].name}"
            raise ExportRefused(f"{place}: the archive has no such file; it holds {names}.")
        if len(numbers) > 1:
            forms = " or ".join(f"g{self._files[one].generation:04d}.{asked.file}:{asked.offset}" for one in numbers)
            raise ExportRefused(f"{place}: several sources used this name. Say which one is meant: {forms}.")
        file = self._files[numbers[0]]
        check = _checked(self._layer, file, asked.offset)
        if check.verdict is Verdict.BOUNDARY:
            return ExportPlace(numbers[0], asked.offset)
        raise ExportRefused(f"{place} {_why_not(check, file)}; {_nearest(check)}. Nothing was written.")


def _parsed(option: str, text: str) -> _Asked:
    """Parse an argument. Raises: ExportRefused; CommandFailed."""
    kind, colon, rest = text.partition(":")
    if colon and kind in ("time", "gtid"):
        text = rest
    elif position := _file_position(text):
        return position
    if kind != "time" and (kind == "gtid" or not _is_date(text)):
        try:
            return MysqlGtid.from_text(text) if ":" in text else DomainGtid.from_text(text)
        except Malformed as error:
            # A time has colons too, and a uuid no "T".
            if kind == "gtid" or not (text[:1].isdigit() and ("-" in text[:5] or text.isdecimal())):
                raise ExportRefused(f"{option} {text}: {error}. {_FORMS}.") from None
    return timestamp(option, text)


def _file_position(text: str) -> _FilePosition | None:
    file, colon, offset = text.rpartition(":")
    if not (colon and offset.isascii() and offset.isdecimal() and len(offset) <= _OFFSET_DIGITS):
        return None
    match = _NAMED.fullmatch(file)
    generation, name = (int(match[1]), match[2]) if match is not None else (None, file)
    try:
        binlog_number(name)
    except Malformed:
        return None
    return _FilePosition(generation, name, int(offset))


def _is_date(text: str) -> bool:
    if not _DATE.fullmatch(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _checked(layer: FileLayer, file: ReadableFile, offset: int) -> PositionCheck:
    """Return the check of the offset. Raises: ExportDamaged; OSError."""
    try:
        return check_offset(layer, file.path, file.stop, file.file.cut, offset)
    except IndexUnusable:
        pass  # the relay rebuilds it; here the file's bytes decide
    try:
        report = report_position(file.path, offset)
    except Unreadable as error:
        raise ExportDamaged(str(error)) from None
    verdict = {
        Standing.VALID: Verdict.BOUNDARY,
        Standing.BEFORE_START: Verdict.BEFORE_START,
        Standing.INSIDE_EVENT: Verdict.INSIDE_EVENT,
        Standing.PAST_END: Verdict.PAST_END,
    }.get(report.standing, Verdict.INSIDE_TRANSACTION)
    return PositionCheck(verdict, report.before, report.after, report.group)


def _why_not(check: PositionCheck, file: ReadableFile) -> str:
    if check.verdict is Verdict.BEFORE_START:
        return "is inside the file's magic: the first event is at 4"
    if check.verdict is Verdict.PAST_END:
        return f"is past the end of what the archive has of this file, {file.stop}"
    group = ""
    if check.group is not None:
        start, stop = check.group
        group = f"the transaction {start}-{stop}" if stop is not None else f"the transaction from {start} on"
    if check.verdict is Verdict.INSIDE_EVENT:
        return f"is inside an event{f', in {group}' if group else ''}"
    return f"is inside {group or 'a transaction'}, and half a transaction is not exported"


def _nearest(check: PositionCheck) -> str:
    before = "none" if check.before is None else str(check.before)
    after = "none" if check.after is None else str(check.after)
    return f"nearest good positions: before {before}, after {after}"
