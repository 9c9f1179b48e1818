"""The number of a view's uuid that a file begins with, as the ledger of the source's archive remembers it.

A view may be deleted, and the files that it was built from may be purged. If it is rebuilt, it must not give a transaction the number
of another one: replicas would silently take it for executed. So the ledger contains the place and number that a view began with, before
the first is assigned, and those of the oldest file, each time that files before it were purged.
"""

import errno
import json
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from protocol.position import Position, binlog_number
from relay.archive.archive import Archive
from relay.archive.catalog.catalog import CatalogUnreadable
from relay.archive.catalog.catalog_rows import LedgerRow
from relay.archive.storage.ledger_kinds import CATALOG_REMADE, CATALOG_SET_ASIDE
from relay.archive_inspection.listing import read_ledgers
from relay.view.generations.view_generations import made_from
from relay.view.rules.settings import ViewSettings
from relay.view.rules.tables.table_engines import TableEngines
from relay.view.stops import source_stops
from relay.view.stops.stop_reason import StopReason
from relay.view.view_map import ViewMap

NUMBERS: Final = "view_numbers"
"""The kind, in the ledger of the source's archive, of a row with a place and the number that a view assigns there."""
RENUMBERED: Final = "view_renumbered"
"""The kind of an operator's statement that no replica has GTIDs of a view: earlier rows `view_numbers` of it do not count any more."""
_MOST_ENGINES: Final = 100
FIND_OUT: Final = (
    "Another relay with this view tells it: `binlog-relay view find NAME --source FILE:4` names the newest number before; `next`, "
    "in the `start` of the [[view]], is one more. Or write another uuid, and seed all replicas of the view again."
)


class FirstNumber(NamedTuple):
    """A number: the first transaction from `position` on, of a file of generation `generation` of the source's archive, gets
    `next_gno`. `engines` are those of the tables without transactions that files before it created, as in `known_engines`."""

    view: str
    generation: int
    position: Position
    next_gno: int
    engines: Mapping[str, str]

    @property
    def place(self) -> tuple[int, int, int]:
        """The key by which numbers are ordered as the source wrote them."""
        return self.generation, binlog_number(self.position.file), self.position.offset

    @property
    def toml(self) -> str:
        """The settings of `[[view]]` for a view that begins there."""
        start = (
            f'start = {{ file = "{self.position.file}", position = {self.position.offset}, next = {self.next_gno} }}'
        )
        engines = ", ".join(f"{json.dumps(name)} = {json.dumps(engine)}" for name, engine in self.engines.items())
        return f"{start}, and known_engines = {{ {engines} }}" if engines else start


def known_numbers(ledger: Iterable[LedgerRow], settings: ViewSettings) -> list[FirstNumber]:
    """Return the known numbers of the view's uuid, recorded by the view itself, or else by others of that uuid, in the order of places.

    `ledger` contains the rows of all generations of the source's archive.
    """
    rows, uuid = list(ledger), str(settings.uuid)
    forgotten = _forgotten(rows, uuid)
    found = [(number, row.time) for row in rows if row.kind == NUMBERS for number in _read(row, uuid)]
    held = [number for number, time in found if time > forgotten.get(number.view, 0.0)]
    own = [number for number in held if number.view == settings.name]
    return sorted(own or held, key=lambda number: number.place)


def _forgotten(ledger: Iterable[LedgerRow], uuid: str) -> dict[str, float]:
    """Return the views that were renumbered, each with the time of the last renumbering."""
    found: dict[str, float] = {}
    for row in ledger:
        if row.kind != RENUMBERED:
            continue
        with suppress(ValueError, KeyError, TypeError):
            told = json.loads(row.details)
            if told["uuid"] == uuid:
                found[str(told["view"])] = max(row.time, found.get(str(told["view"]), 0.0))
    return found


def renumbered_row(settings: ViewSettings, by: str) -> LedgerRow:
    """Return the ledger row of an operator's statement that no replica has GTIDs of the view."""
    details = {"view": settings.name, "uuid": str(settings.uuid)}
    text = f"View {settings.name} is numbered again: no replica has GTIDs of {settings.uuid} from it, says {by}"
    return LedgerRow(time.time(), RENUMBERED, "", -1, text, json.dumps(details, sort_keys=True))


def renumber_advice(settings: ViewSettings) -> str:
    """Return the advice for wrong numbers that no replica has."""
    return (
        f'Where no replica has GTIDs of {settings.uuid} yet, "binlog-relay view rebuild {settings.name} --renumber", with the '
        "relay stopped, numbers the view again."
    )


def _read(row: LedgerRow, uuid: str) -> list[FirstNumber]:
    try:
        told: dict[str, Any] = json.loads(row.details)
        if told["uuid"] != uuid:
            return []
        position, engines = Position(row.file, row.offset), dict(told["engines"])
        return [FirstNumber(str(told["view"]), int(told["generation"]), position, int(told["next"]), engines)]
    except (ValueError, KeyError, TypeError):
        return []


def number_row(number: FirstNumber, settings: ViewSettings) -> LedgerRow:
    """Return the ledger's row for the number."""
    details = {
        "view": number.view,
        "uuid": str(settings.uuid),
        "generation": number.generation,
        "next": number.next_gno,
        "engines": dict(number.engines),
    }
    text = f"View {number.view} gives the first transaction from {number.position} on the GTID {settings.uuid}:{number.next_gno}"
    return LedgerRow(
        time.time(), NUMBERS, number.position.file, number.position.offset, text, json.dumps(details, sort_keys=True)
    )


def why_unsure(wanted: FirstNumber, known: Sequence[FirstNumber], settings: ViewSettings) -> StopReason | None:
    """Return why a view must not begin so; None: no number is another transaction's. `known` is from `known_numbers`."""
    if not settings.counts or not known:
        return None
    uuid, place = settings.uuid, wanted.position
    same = [one for one in known if one.place == wanted.place]
    if same:
        first = same[-1]
        if first.next_gno == wanted.next_gno:
            return None
        text = (
            f"the first transaction from {place} on was {uuid}:{first.next_gno}, and would be {uuid}:{wanted.next_gno}"
        )
        advice = f"Write into the [[view]], and restart the relay: {first.toml}."
        return source_stops.gtid_number_unknown(text, f"{advice} {renumber_advice(settings)}")
    before = [one for one in known if one.place < wanted.place]
    behind = [one for one in known if one.place > wanted.place]
    if settings.start is not None:
        wrong = [one for one in before[-1:] if one.next_gno > wanted.next_gno]
        wrong += [one for one in behind[:1] if one.next_gno < wanted.next_gno]
        for one in wrong:
            text = f"next = {wanted.next_gno} at {place} cannot be: at {one.position} the number was {one.next_gno}"
            return source_stops.gtid_number_unknown(text, f"{FIND_OUT} {renumber_advice(settings)}")
        return None
    nearest = before[-1] if before else behind[0]
    text = (
        f"the view was begun at {nearest.position} with number {nearest.next_gno} of {uuid}, and begins with {place} now: which "
        "number is the first there is not known"
    )
    return source_stops.gtid_number_unknown(text, f"{FIND_OUT} {renumber_advice(settings)}")


def engines_in(state: bytes, settings: ViewSettings) -> dict[str, str]:
    """Return the tables without transactions that the rules know, with their engines, but not the configured ones; at most 100."""
    engines = TableEngines()
    engines.restore(state)
    found: dict[str, str] = {}
    for name in sorted(engines.without_transactions() or []):
        facts = engines.facts(name)
        if facts is not None and len(found) < _MOST_ENGINES:
            found[".".join(name)] = facts.engine or facts.default_engine
    return found | dict(settings.known_engines) if found else {}


class FirstNumbers:
    """The first numbers of one view, built from the source's archive `mirror` into its own, `archive`. Blocking methods say so."""

    def __init__(self, mirror: Archive, archive: Archive, settings: ViewSettings) -> None:
        self._mirror = mirror
        self._archive = archive
        self._settings = settings
        self._noted: tuple[int, str] | None = None
        """The generation and name of the oldest file that was looked at."""
        self._begins: tuple[FirstNumber, Sequence[FirstNumber]] | None = None
        """The row that the ledger must get before the first number is assigned, and the numbers that it contains already."""

    def begin(self, generation: int, position: Position, next_gno: int) -> StopReason | None:
        """Return why the view must not begin there; None: it may, and `begun` must be called before its first bytes are handed over.

        Blocking. Raises: OSError.
        """
        self._begins = None
        if not self._settings.counts:
            return None
        wanted = FirstNumber(self._settings.name, generation, position, next_gno, self._settings.known_engines)
        ledger = self._ledger()
        known = known_numbers(ledger, self._settings)
        reason = why_unsure(wanted, known, self._settings)
        if reason is None and not known and self._settings.start is None:
            reason = self._lost_ledger(ledger, wanted)
        if reason is None:
            self._begins = wanted, known
        return reason

    @property
    def is_begun(self) -> bool:
        """True if `begun` has nothing to write."""
        return self._begins is None

    def begun(self) -> None:
        """Write into the ledger where the view begins: not earlier, as a `start` may turn out to be inside a transaction. Blocking.

        Raises: OSError.
        """
        if self._begins is not None:
            self._note(*self._begins)
            self._begins = None

    def _lost_ledger(self, ledger: Sequence[LedgerRow], wanted: FirstNumber) -> StopReason | None:
        """Return why it is unknown whether such a view existed."""
        is_lost = bool(ledger) and ledger[0].kind in (CATALOG_REMADE, CATALOG_SET_ASIDE)
        if not is_lost or binlog_number(wanted.position.file) == 1:
            return None
        text = "the catalog of the archive was lost, and whether a view of this uuid was there before is not known"
        return source_stops.gtid_number_unknown(
            text, f"If replicas have GTIDs of {self._settings.uuid}: {FIND_OUT} If none has: write {wanted.toml}."
        )

    @property
    def is_noted(self) -> bool:
        """True if nothing was purged since `note`."""
        return self._oldest() == self._noted or not self._settings.counts

    def _oldest(self) -> tuple[int, str] | None:
        return next(((one.number, one.files[0].name) for one in self._mirror.all if one.files), None)

    def note(self) -> None:
        """Write the number of the oldest file that the mirror and the view have into the ledger. Blocking.

        Where it cannot be written now it stays queued; where it cannot be determined, a view that is rebuilt asks for it.
        """
        self._noted = self._oldest()
        with suppress(OSError):
            self._note_oldest()

    def _note_oldest(self) -> None:
        known = known_numbers(self._ledger(), self._settings)
        sources = {source.number: source for source in self._mirror.all}
        for made in self._archive.all:
            source = sources.get(made_from(made.directory, made.number))
            name = next((file.name for file in made.files if source is not None and source.file(file.name)), None)
            if source is None or name is None:
                continue
            begin = ViewMap.read(made.directory / name).beginning()
            if begin is not None:
                engines = engines_in(begin.rules, self._settings)
                position = Position(name, begin.source)
                self._note(FirstNumber(self._settings.name, source.number, position, begin.next_gno, engines), known)
            return

    def _note(self, number: FirstNumber, known: Sequence[FirstNumber]) -> None:
        told = [one for one in known if one.place == number.place and one.view == number.view]
        if not told or told[-1].next_gno != number.next_gno:
            self._mirror.current.write_ledger(number_row(number, self._settings))

    def _ledger(self) -> list[LedgerRow]:
        """Read all ledgers of the source's archive. Raises: OSError."""
        try:
            return [row for _number, row in read_ledgers(self._mirror.directory)]
        except (CatalogUnreadable, sqlite3.Error) as error:
            text = f"the ledger cannot be read: {error}"
            raise OSError(errno.EIO, text, str(self._mirror.directory)) from error
