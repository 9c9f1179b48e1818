"""The rows of `catalog.sqlite`: their fields, and the values and checksums that are stored."""

from dataclasses import dataclass
from typing import Any, Final
from zlib import crc32

from protocol.errors import Malformed
from protocol.gtid.gtid_set import GtidSet
from protocol.printable import printable
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.gtid_facts import GtidFacts, GtidValue, decode_state, encode_state
from relay.archive.storage.origin import Origin

_MOST_TEXT_BYTES: Final = 64 << 10


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One thing that an operator must be able to find later. `time` in seconds since 1970, `offset` -1 if there is none.

    `text` is printable: what others named in it is shown on pages and terminals. `details`: the part that a program must be able to
    read, as a JSON object; empty: nothing.
    """

    time: float
    kind: str
    file: str
    offset: int
    text: str
    details: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", printable(self.text, _MOST_TEXT_BYTES))


@dataclass(frozen=True, slots=True)
class DamagedPlace:
    """A place where an archived file is not what was archived.

    `offset`: the first byte that is known to be wrong. `boundary`: the end of the last whole transaction before it, where
    streams end. `found`: seconds since 1970. `text`: what is wrong, without a full stop.
    """

    file: str
    offset: int
    boundary: int
    found: float
    text: str


def encoded_state(origin: Origin) -> tuple[str, bytes | None]:
    """Return the origin's flavour, and its state as it is stored."""
    state = origin.state
    return "mysql" if isinstance(state, GtidSet) else "mariadb", None if state is None else encode_state(state)


def decoded_state(flavour: str, state: bytes | None) -> GtidValue | None:
    """Return the state; None: there is none, or it cannot be read."""
    try:
        return None if state is None else decode_state(flavour, state)
    except Malformed:
        return None


def decoded_gtids(flavour: str, before: bytes | None, inside: bytes | None, anonymous: int | None) -> GtidFacts | None:
    """Return what a row says of a file's GTIDs; None: nothing, or it cannot be read."""
    if anonymous is None:
        return None
    try:
        return GtidFacts(
            None if before is None else decode_state(flavour, before),
            None if inside is None else decode_state(flavour, inside),
            anonymous,
        )
    except Malformed:
        return None


def row_sum(values: tuple[object, ...]) -> int:
    """Return the checksum that is stored with a row of these values, in the order of `SUMMED`."""
    return crc32(repr(values).encode("utf-8", "backslashreplace"))


def summed(values: tuple[object, ...]) -> tuple[object, ...]:
    """Return the values of a row with their checksum."""
    return (*values, row_sum(values))


def damage_values(place: DamagedPlace) -> tuple[object, ...]:
    """Return the values of a row of `damage`."""
    return summed((place.file, place.offset, place.boundary, float(place.found), place.text))


def ledger_values(row: LedgerRow) -> tuple[object, ...]:
    """Return the values of a row of `ledger`."""
    return summed((float(row.time), row.kind, row.file, row.offset, row.text, row.details))


def file_of(row: tuple[Any, ...]) -> ArchivedFile:
    """Return the file that a row of `files` describes, without its checksum."""
    file = ArchivedFile(*row)  # its place is in a table of its own
    file.sealed, file.cut, file.damaged = bool(file.sealed), bool(file.cut), bool(file.damaged)
    return file


def file_row(file: ArchivedFile) -> tuple[object, ...]:
    """Return the file's catalog row as of now; pass it to `Catalog.put_file` in the catalog's thread."""
    return (
        file.name,
        file.number,
        file.end,
        int(file.sealed),
        file.created,
        file.server_version,
        file.server_id,
        file.checksum,
        file.flavour,
        file.first_timestamp,
        file.last_timestamp,
        file.events,
        file.groups,
        int(file.cut),
        int(file.damaged),
        file.digest,
    )
