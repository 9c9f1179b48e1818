"""The GTIDs that the source reports, queried at each attachment and when its mode may have changed."""

import asyncio
import itertools
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol, TypeVar

import structlog

from protocol.errors import Malformed
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidList
from protocol.printable import printable
from relay.archive.storage.files import SOURCE_GTIDS_NAME
from relay.archive.storage.small_file import write_small_file
from relay.disk.file_calls import read_file
from relay.disk.kept_json import kept_json
from relay.upstream.source.source_errors import FailureKind, UpstreamError

log = structlog.get_logger()

_UUID: Final = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
_OWNER: Final = re.compile(r"#\d+")
_LONGEST_MODE: Final = 32
_AT_ONCE_CHARACTERS: Final = 16_384
"""A set of up to so many characters is parsed on the event loop."""
_NO_TRANSACTIONS: Final = GtidSet()
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class SourceGtids:
    """The source's GTID variables. `mode` is MySQL's GTID_MODE (None: a source without one).

    `executed` includes the transactions that are in its binlog and being committed. `binlog_state` is MariaDB's (None: not asked).
    """

    mode: str | None = None
    executed: GtidSet = _NO_TRANSACTIONS
    purged: GtidSet = _NO_TRANSACTIONS
    binlog_state: GtidList | None = None
    domain_id: int = 0
    strict_mode: bool = False


class VariableReader(Protocol):
    """A connection to the source."""

    async def variable(self, name: str) -> str | None:
        """Return a global variable's text; None if the source does not know it."""


async def read_source_gtids(source: VariableReader, flavour: str, *, with_state: bool = True) -> SourceGtids:
    """Ask the source. With `with_state` MariaDB is also asked for its binlog state, for which it waits while a commit holds its binlog.

    Raises: UpstreamError SETUP for an answer that cannot be read.
    """
    try:
        if flavour == "mariadb":
            state = await source.variable("gtid_binlog_state") if with_state else None
            domain_id = await source.variable("gtid_domain_id")
            strict_mode = await source.variable("gtid_strict_mode")
            return SourceGtids(
                binlog_state=await _parsed(GtidList.from_text, state) if state is not None else None,
                domain_id=int(domain_id or 0),
                strict_mode=(strict_mode or "").upper() in ("1", "ON"),
            )
        mode = await source.variable("gtid_mode")
        if mode is None:
            return SourceGtids()
        # The order matters: what is being committed is owned, and is executed from the moment when it is no longer owned.
        owned = await source.variable("gtid_owned")
        executed = await source.variable("gtid_executed")
        purged = await source.variable("gtid_purged")
        return SourceGtids(
            mode=_shown_mode(mode),
            executed=await _parsed(GtidSet.from_text, executed or "") | await _parsed(owned_set, owned or ""),
            purged=await _parsed(GtidSet.from_text, purged or ""),
        )
    except (Malformed, ValueError) as error:
        raise UpstreamError(FailureKind.SETUP, f"the source's GTID variables cannot be read: {error}") from error


async def look_again(source: VariableReader, known: SourceGtids) -> SourceGtids:
    """Return `known` with the current values of those variables that may change while a stream runs, and cost the source nothing.

    Raises: UpstreamError SETUP for an answer that cannot be read.
    """
    try:
        if known.mode is None:
            domain_id, strict_mode = await source.variable("gtid_domain_id"), await source.variable("gtid_strict_mode")
            return replace(known, domain_id=int(domain_id or 0), strict_mode=(strict_mode or "").upper() in ("1", "ON"))
        mode, purged = await source.variable("gtid_mode"), await source.variable("gtid_purged")
        gone = await _parsed(GtidSet.from_text, purged or "")
        return replace(known, mode=_shown_mode(mode) if mode is not None else None, purged=gone)
    except (Malformed, ValueError) as error:
        raise UpstreamError(FailureKind.SETUP, f"the source's GTID variables cannot be read: {error}") from error


def _shown_mode(text: str) -> str:
    return printable(text, _LONGEST_MODE).upper()


async def _parsed(parse: Callable[[str], _Value], text: str) -> _Value:
    """Parse a long text in a thread: a set of a megabyte takes a third of a second. Raises: as `parse`."""
    return await asyncio.to_thread(parse, text) if len(text) > _AT_ONCE_CHARACTERS else parse(text)


def owned_set(text: str) -> GtidSet:
    """Return the transactions in @@GLOBAL.gtid_owned: `uuid:9#3:7#2,uuid:...` (number, '#', thread); 9.7 leaves the commas out.

    Raises: Malformed.
    """
    starts = [match.start() for match in _UUID.finditer(text)]
    parts = [text[start:stop] for start, stop in itertools.pairwise([*starts, len(text)])]
    return GtidSet.from_text(",".join(_OWNER.sub("", part.strip(" \n,")) for part in parts))


def kept_part(gtids: SourceGtids | None) -> SourceGtids:
    """Return the part that is saved; None, a source that was never asked, is shown as one without GTIDs."""
    shown = gtids or SourceGtids()
    return replace(shown, mode=shown.mode or "OFF", executed=_NO_TRANSACTIONS, binlog_state=None)


def keep_source_gtids(directory: Path, gtids: SourceGtids) -> None:
    """Save what replicas are shown while the source cannot be reached. Blocking. Raises: OSError."""
    held = {
        "gtid_mode": gtids.mode,
        "gtid_purged": gtids.purged.line,
        "gtid_domain_id": gtids.domain_id,
        "gtid_strict_mode": gtids.strict_mode,
    }
    write_small_file(directory / SOURCE_GTIDS_NAME, json.dumps(held, sort_keys=True) + "\n")


def kept_source_gtids(directory: Path) -> SourceGtids | None:
    """Return what the source last reported; None for a new archive. Blocking."""
    path = directory / SOURCE_GTIDS_NAME
    try:
        held = kept_json(read_file(path))
        mode = held["gtid_mode"]
        return SourceGtids(
            mode=_shown_mode(str(mode)) if mode is not None else None,
            purged=GtidSet.from_text(held["gtid_purged"]),
            domain_id=int(held["gtid_domain_id"]),
            strict_mode=bool(held["gtid_strict_mode"]),
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, Malformed) as error:
        log.warning(
            "source_gtids_unreadable", file=str(path), why=str(error), note="asked again at the next attachment"
        )
        return None
