"""The place of a sealed binlog: on the disk as it was received, on the disk packed, or packed in a bucket.

NAME.place records it, next to NAME.idx, with the file's catalog row and its GTIDs: so the disk alone tells what is in the bucket, and
the bucket, which has a copy, what a lost disk had. NAME.gone replaces it once the file was purged, until the bucket has none of it.
"""

import json
import re
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from relay.disk.file_calls import open_to_read, read_file

PLACE_SUFFIX: Final = ".place"
GONE_SUFFIX: Final = ".gone"
_HEAD: Final = '{"place": '
_HEAD_BYTES: Final = 4096
_PLACE_SUM: Final = re.compile(r', "place_sum": ([0-9]{1,10})[,}]', re.ASCII)


class Tier(StrEnum):
    """The form and place in which a file is stored."""

    HOT = "hot"
    COLD = "cold"
    OBJECT = "object"


@dataclass(frozen=True, slots=True)
class StorageLocation:
    """`stored_name`: of the stored file; `stored_bytes`, `digest`: of its bytes. `key_id`: None: not encrypted. `plain_bytes`: of the
    binlog. `end_digest`: of what follows its frames, by which each frame is known for what was packed; empty: not recorded."""

    tier: Tier
    stored_name: str
    stored_bytes: int
    key_id: str | None
    digest: str
    plain_bytes: int
    end_digest: str = ""


@dataclass(frozen=True, slots=True)
class LocationNote:
    """The contents of NAME.place. `file_row`: as in the catalog's table `files`; `gtids`: flavour, state before, transactions inside
    (as at a file's head), those without GTID, as in the table `gtids`; None: unknown."""

    place: StorageLocation
    file_row: tuple[Any, ...]
    gtids: tuple[str, bytes | None, bytes | None, int] | None

    def encode(self) -> bytes:
        """Return the note as it is written."""
        gtids = None
        if self.gtids is not None:
            flavour, before, inside, anonymous = self.gtids
            gtids = [flavour, _hex(before), _hex(inside), anonymous]
        place = asdict(self.place)
        # The place comes first, with a sum of its own: a reader of that alone reads no megabytes of GTIDs.
        told = {"place": place, "place_sum": _sum(place), "file": list(self.file_row), "gtids": gtids}
        return json.dumps({**told, "sum": _sum(told)}).encode()

    @classmethod
    def decode(cls, data: bytes) -> "LocationNote":
        """Decode a note. Raises: ValueError."""
        try:
            told = json.loads(data)
            total = told.pop("sum", None)
            if total is not None and total != _sum(told):
                raise ValueError("its checksum is wrong")
            place = told["place"]
            gtids = told.get("gtids")
            if gtids is not None:
                flavour, before, inside, anonymous = gtids
                gtids = (flavour, _unhex(before), _unhex(inside), anonymous)
            return cls(_place_of(place), tuple(told.get("file", ())), gtids)
        except (KeyError, TypeError, AttributeError, RecursionError, UnicodeError) as error:
            raise ValueError(f"it cannot be read: {type(error).__name__} {error}") from error


def _place_of(told: dict[str, Any]) -> StorageLocation:
    """Decode the place. Raises: ValueError, KeyError. A bucket may have been written by others: no name leads out of a directory."""
    found = StorageLocation(Tier(told["tier"]), *_values(told))
    name, sizes = found.stored_name, (found.stored_bytes, found.plain_bytes)
    if not isinstance(name, str) or not name or "/" in name or "\0" in name or name.startswith("."):
        raise ValueError(f"{name!r} is no name of a stored file")
    if not all(type(size) is int and -1 <= size < 1 << 62 for size in sizes) or not isinstance(found.digest, str):
        raise ValueError("its sizes or its digest are none")
    if not isinstance(found.key_id, str | None):
        raise ValueError("its key id is none")
    if not isinstance(found.end_digest, str):
        raise ValueError("the digest of its end is none")
    return found


def _values(told: dict[str, Any]) -> tuple[Any, ...]:
    return (*(told[name] for name in StorageLocation.__slots__[1:-1]), told.get(StorageLocation.__slots__[-1], ""))


def place_path(path: Path) -> Path:
    """Return the path of NAME.place of the binlog at `path`."""
    return path.with_name(path.name + PLACE_SUFFIX)


def read_note(path: Path) -> LocationNote | None:
    """Return the note next to the binlog at `path`; None: there is none. Raises: ValueError; OSError."""
    try:
        return LocationNote.decode(read_file(place_path(path)))
    except FileNotFoundError:
        return None


def read_place(path: Path) -> StorageLocation | None:
    """Return the place of the binlog of that path; None: it has no NAME.place. It reads the first bytes only: fit for the event loop.

    Raises: ValueError; OSError.
    """
    try:
        with open(open_to_read(place_path(path)), "rb") as file:
            place = _place_at_head(file.read(_HEAD_BYTES))
    except FileNotFoundError:
        return None
    if place is not None:
        return place
    note = read_note(path)  # it is damaged, or from before the place had a sum of its own
    return None if note is None else note.place


def _place_at_head(data: bytes) -> StorageLocation | None:
    if not data.startswith(_HEAD.encode()):
        return None
    try:
        text = data.decode("ascii")
        place, end = json.JSONDecoder().raw_decode(text, len(_HEAD))
        match = _PLACE_SUM.match(text, end)
        if match is None or int(match[1]) != _sum(place):
            return None
        return StorageLocation(Tier(place["tier"]), *_values(place))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _sum(told: dict[str, Any]) -> int:
    return crc32(json.dumps(told, sort_keys=True).encode())


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def _unhex(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)
