"""An accepted gap between two generations of the archive, and the record of it with the later one.

The source's binlogs do not lead on from where the archive ends: they were purged there too early, it lost the end of them in a crash,
it was reset, restored or replaced. An accepted gap begins a new generation of the archive with the source's next whole file. Without
the record a stream would silently pass from one to the other, so it is written twice: as a file in the directory of the later
generation, and as the details of a row of its ledger.
"""

import contextlib
import json
import sqlite3
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Final

from protocol.errors import Malformed, RelayError
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidList
from protocol.position import Position, binlog_number
from relay.archive.catalog.catalog import Catalog, CatalogUnreadable
from relay.archive.storage.files import CATALOG_NAME, GAP_NAME
from relay.archive.storage.gtid_facts import GtidValue
from relay.archive.storage.ledger_kinds import GAP_ACCEPTED
from relay.archive.storage.small_file import write_small_file
from relay.disk.file_calls import read_file
from relay.disk.kept_json import kept_json

_SHOWN_CHARACTERS: Final = 120


class GapUnreadable(RelayError):
    """The record of a gap cannot be read, or not all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedGap:
    """The part that is missing between the archive's end and the file with which it continues, and the person who accepted that."""

    flavour: str
    stop: str
    """The trouble with the source that it was accepted for."""
    time: float
    """Unix seconds."""
    by: str
    """The person who accepted it."""
    source: str
    """host:port."""
    after: Position
    """The archive's end."""
    last_time: int
    """The time of the archive's last event, Unix seconds, 0: unknown."""
    common: Position | None
    """The position up to which the archive and the source have the same; None: they have no file in common, or the source has
    purged it, and `after` counts."""
    to: Position
    """The place where the source continues; the generation begins with that file's first byte."""
    created: int
    """The time when that file was created, Unix seconds."""
    server_id: int
    """The server that created it."""
    is_whole: bool
    """True if nothing is missing, as far as GTIDs or positions tell."""
    has_place: bool = True
    """True if `to` is what follows by file and position; it is not if another server's binlogs continue, which are found by GTID."""
    missing: str = ""
    """GTIDs that were not archived, as text; empty: none, or they are not known."""
    lost: str = ""
    """GTIDs that the archive has and the source lost, as text."""
    state: str | None = None
    """The GTIDs executed at `common`, as text; None: without GTIDs."""
    replicas: tuple[str, ...] = ()
    """The replicas that were sent what the source has lost."""

    @property
    def fork(self) -> Position:
        """The position up to which replicas are served the generation before: what comes after it the source does not have."""
        return self.common if self.common is not None else self.after

    @property
    def has_lost(self) -> bool:
        """True if the source lost something that the archive has."""
        return bool(self.lost) or self.after != self.fork

    @property
    def executed(self) -> GtidValue | None:
        """Everything that was executed at `fork`; None: unknown."""
        return None if self.state is None else _value(self.flavour, self.state)

    @property
    def lost_gtids(self) -> GtidValue:
        """`lost` as a value: for MariaDB, the newest groups that the source lost, of each server."""
        return _value(self.flavour, self.lost)

    def same_facts(self, other: "AcceptedGap") -> bool:
        """Return whether both are about the same gap, regardless of who accepted it and of the source's address."""
        return self._facts() == other._facts()

    def _facts(self) -> "AcceptedGap":
        return replace(self, stop="", time=0.0, by="", source="", has_place=True, replicas=())

    # --- for people --------------------------------------------------------------------------------------------------

    @property
    def are_missing(self) -> str:
        """The words about binlogs in a sentence: "are missing" if that is certain, else "may be missing"."""
        skipped = binlog_number(self.to.file) > binlog_number(self.fork.file) + 1
        return "are missing" if self.missing or skipped else "may be missing"

    @property
    def what_is_missing(self) -> str:
        """A sentence, without its full stop, about what is missing."""
        where = f"between {self.fork} and {self.to}"
        if self.is_whole:
            return f"no binlog is missing {where}"
        gtids = f": {_cut(self.missing)}" if self.missing else ""
        return f"binlogs {self.are_missing} {where}{gtids}"

    @property
    def what_is_lost(self) -> str:
        """A sentence, without its full stop, about what is lost; empty: nothing is."""
        if not self.has_lost:
            return ""
        gtids = f": {_cut(self.lost)}" if self.lost else ""
        if self.after != self.fork:
            return f"the source has lost what the archive has from {self.fork} to {self.after}{gtids}"
        return f"the source has not what the archive has{gtids}"

    @property
    def text(self) -> str:
        """The whole text, for the ledger and the log."""
        parts = [
            f"{self.what_is_missing[0].upper()}{self.what_is_missing[1:]} "
            f"({_moment(self.last_time)} to {_moment(self.created)})",
        ]
        if self.has_lost:
            parts.append(f"{self.what_is_lost[0].upper()}{self.what_is_lost[1:]}")
        if self.replicas:
            parts.append(f"Replicas that were sent it: {', '.join(self.replicas)}")
        parts.append(f"Accepted by {self.by} for {self.stop}")
        return ". ".join(parts) + "."

    # --- as a record -------------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """Return it as one line."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "AcceptedGap":
        """Decode it. Raises: GapUnreadable."""
        try:
            held = kept_json(text)
            for key in ("after", "common", "to"):
                held[key] = None if held[key] is None else Position(str(held[key]["file"]), int(held[key]["offset"]))
            held["replicas"] = tuple(map(str, held["replicas"]))
            gap = cls(**held)
            _ = gap.executed, gap.lost_gtids
        except (ValueError, KeyError, TypeError, Malformed) as error:
            raise GapUnreadable(f"the record of an accepted gap cannot be read: {error}") from error
        return gap


@lru_cache(maxsize=16)
def _value(flavour: str, text: str) -> GtidValue:
    """Return the value of a text. Sets may be large, and are needed with each request."""
    return GtidSet.from_text(text) if flavour == "mysql" else GtidList.from_text(text)


def keep_gap(directory: Path, gap: AcceptedGap, name: str = GAP_NAME) -> None:
    """Write the record into a generation's directory. Blocking. Raises: OSError."""
    write_small_file(directory / name, gap.to_json() + "\n")


def kept_gap(directory: Path, name: str = GAP_NAME) -> AcceptedGap | None:
    """Return the record in a directory; None: there is none. Blocking. Raises: GapUnreadable; OSError."""
    try:
        return AcceptedGap.from_json(read_file(directory / name).decode())
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise GapUnreadable(f"the record of an accepted gap cannot be read: {error}") from error


def gap_before(directory: Path) -> AcceptedGap | None:
    """Return the gap after which the generation in `directory` begins; None: none. Blocking.

    Raises: GapUnreadable if it begins after one and nothing tells which; OSError.
    """
    unreadable: GapUnreadable | None = None
    try:
        kept = kept_gap(directory)
    except GapUnreadable as error:
        kept, unreadable = None, error
    if kept is not None:
        return kept
    with contextlib.suppress(CatalogUnreadable, sqlite3.Error):
        catalog = Catalog.open_read_only(directory / CATALOG_NAME)
        try:
            rows = [row for row in catalog.ledger() if row.kind == GAP_ACCEPTED]
        finally:
            catalog.close()
        if rows:
            return AcceptedGap.from_json(rows[0].details)
    if unreadable is not None:
        raise unreadable
    return None


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


def _moment(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if seconds else "an unknown time"
