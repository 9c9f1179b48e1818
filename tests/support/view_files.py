"""The content of a view's files, read by the events' lengths alone, without the product."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

from tests.support.binlog_comparison import FORMAT_DESCRIPTION, RawEvent, check_crc, events_of, has_checksums

_GTID, _ANONYMOUS, _GTID_TAGGED = 33, 34, 42
_BETWEEN: Final = frozenset((3, 4, 35))
"""Stop, Rotate, Previous_gtids."""
_END_LOG_POS: Final = slice(13, 17)


@dataclass(frozen=True, slots=True)
class ViewGroup:
    """A transaction of a view: where its Gtid event begins and whose it is; gno 0 means that it has none."""

    file: str
    offset: int
    uuid: UUID
    gno: int


def binlogs_in(directory: Path) -> list[Path]:
    """Return the binlogs of an archive or a view, oldest first."""
    return sorted(path for path in directory.glob("*.[0-9]*") if path.suffix[1:].isdigit())


def groups_in(directory: Path) -> Iterator[ViewGroup]:
    """Yield all transactions of a view; each event's place and checksum is checked. Raises: Difference, AssertionError."""
    for path in binlogs_in(directory):
        checksum: bool | None = None
        for event in events_of(path.read_bytes(), path.name):
            if checksum is None:
                checksum = has_checksums(event.data)
            if checksum or event.kind == FORMAT_DESCRIPTION:
                check_crc(event, path.name)
            end = int.from_bytes(event.data[_END_LOG_POS], "little")
            assert end == event.end, (
                f"{path.name}:{event.offset}: end_log_pos is {end}, and the event ends at {event.end}"
            )
            if event.kind in (_GTID, _ANONYMOUS):
                yield ViewGroup(path.name, event.offset, *_gtid(event))


def _gtid(event: RawEvent) -> tuple[UUID, int]:
    body = event.data[19:]
    return UUID(bytes=body[1:17]), int.from_bytes(body[17:25], "little")


def check_numbers(directory: Path, uuid: UUID) -> int:
    """Check that numbers of `uuid` count from 1 without gaps over all files; return how many there are. Raises: AssertionError."""
    expected = 0
    for group in groups_in(directory):
        if group.uuid == uuid:
            expected += 1
            assert group.gno == expected, f"{group.file}:{group.offset} has number {group.gno}, not {expected}"
    return expected


def check_same_files(first: Path, second: Path) -> int:
    """Check that both directories have the same binlogs, byte for byte; return the bytes compared. Raises: AssertionError."""
    ours, theirs = ({path.name: path for path in binlogs_in(one)} for one in (first, second))
    assert list(ours) == list(theirs), f"{first}: {list(ours)}; {second}: {list(theirs)}"
    size = 0
    for name in ours:
        one, other = ours[name].read_bytes(), theirs[name].read_bytes()
        if one != other:
            at = next(
                (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(map(len, (one, other)))
            )
            raise AssertionError(
                f"{name} differs from byte {at} on: {len(one)} bytes in {first}, {len(other)} in {second}"
            )
        size += len(one)
    return size


def transactions_in(directory: Path) -> dict[int, list[tuple[int, bytes]]]:
    """Return type and body of the events of each transaction by its number, without its Gtid event. Numbers are of one uuid."""
    found: dict[int, list[tuple[int, bytes]]] = {}
    for path in binlogs_in(directory):
        checksum, number = False, 0
        for event in events_of(path.read_bytes(), path.name):
            if event.kind == FORMAT_DESCRIPTION:
                checksum = has_checksums(event.data)
                number = 0
            elif event.kind == _GTID:
                number = _gtid(event)[1]
                found[number] = []
            elif event.kind in _BETWEEN:
                number = 0
            elif number:
                found[number].append((event.kind, event.data[19 : -4 if checksum else None]))
    return found
