"""A view as it is named from outside, and its places: by the source's position, by its own, by GTID."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidPosition
from protocol.gtid.mysql_gtid import MysqlGtid, Tsid
from protocol.position import Position, binlog_number
from relay.archive.catalog.catalog import CatalogUnreadable
from relay.archive.catalog.generation_directories import begun_generations, generation_path
from relay.archive.storage.files import CATALOG_NAME
from relay.archive_inspection.listing import read_ledger
from relay.archive_inspection.transaction_search import find_gtid
from relay.view.generations.view_generations import made_generations, qualified
from relay.view.inspect.executed_gtids import executed_before
from relay.view.inspect.standing_stop import standing_stop
from relay.view.rules.kept_settings import view_directory
from relay.view.rules.mariadb.assigned_gtids import domain_uuid
from relay.view.rules.settings import MARIADB, ViewSettings
from relay.view.stops.view_stop import ViewStop
from relay.view.view_lookup import ViewLookup
from relay.view.view_place import InsideTransaction, PlaceFinder, PlaceUnknown, ViewPlace
from relay.view.view_skips import skips_of

_EXTRAS: Final = (1, 2, 3)
"""The numbers of the transactions that one group of MariaDB becomes besides the one in its place."""
_MARIADB_POSITION: Final = re.compile(r"\s*+\d++-\d++-\d++\s*+(?>(,\s*+\d++-\d++-\d++\s*+)*)(,\s*+)?")


def is_mariadb_position(text: str) -> bool:
    """Return whether the text is written as a `gtid_slave_pos`: 0-1-100, or several."""
    return _MARIADB_POSITION.fullmatch(text) is not None


def named_view(archive: Path, settings: ViewSettings, generations: Sequence[Path] | None = None) -> "NamedView":
    """Return a view of the existing files. `archive` is the source's directory. `generations` are the directories of those that have
    begun, if they are known: to look for them takes a while among 10,000 files. Blocking. Raises: CatalogUnreadable; OSError.
    """
    if generations is None:
        generations = [path for _number, path in begun_generations(archive)]
    directory = view_directory(archive, settings.name)
    skips = skips_of([row for path in generations for row in read_ledger(path)], settings.name)
    return NamedView(archive, directory, settings, ViewLookup(archive, directory, settings, skips))


class NamedView(NamedTuple):
    """A view that relay.toml names. `archive` is the source's directory, `directory` the view's own. All methods block."""

    archive: Path
    directory: Path
    settings: ViewSettings
    places: PlaceFinder

    @property
    def name(self) -> str:
        """The name in `[[view]]`."""
        return self.settings.name

    @property
    def is_made(self) -> bool:
        """True if any of it exists."""
        return (self.directory / CATALOG_NAME).exists()

    def of_source(self, position: Position) -> ViewPlace:
        """Return the place of the source's `position`. Raises: InsideTransaction; PlaceUnknown; OSError."""
        self._check_is_made()
        return self.places.of_source(position)

    def of_view(self, position: Position) -> ViewPlace:
        """Return the place of the view's `position`. Raises: InsideTransaction; PlaceUnknown; OSError."""
        self._check_is_made()
        return self.places.of_view(position)

    def after(self, gtid: MysqlGtid) -> ViewPlace:
        """Return the place after this transaction, whatever assigned its GTID. Raises: PlaceUnknown; CatalogUnreadable; OSError."""
        self._check_is_made()
        if self.settings.counts and gtid.tsid.key == self.settings.uuid.bytes:
            return self.places.of_gno(gtid.gno)
        found = self._behind_own(gtid)
        if found is None:
            raise PlaceUnknown(f"View {self.name} does not hold transaction {gtid.tsid}:{gtid.gno}.")
        return found

    def _behind_own(self, gtid: MysqlGtid) -> ViewPlace | None:
        for made in made_generations(self.archive, self.directory):
            found = find_gtid(made.directory, gtid)
            if found is not None:
                return self.places.of_view(Position(qualified(made.number, found.file), found.end))
        return None

    def behind_text(self, text: str) -> ViewPlace:
        """Return the place after a transaction given as uuid:number, or, for a MariaDB source, of a server with that `gtid_slave_pos`.

        Raises: Malformed; PlaceUnknown; CatalogUnreadable; OSError.
        """
        if self.settings.flavour == MARIADB and is_mariadb_position(text):
            return self.behind_position(GtidPosition.from_text(text))
        return self.after(MysqlGtid.from_text(text))

    def behind_position(self, wanted: GtidPosition) -> ViewPlace:
        """Return the place that is preceded by exactly the groups that a MariaDB server with this position has.

        Raises: PlaceUnknown; CatalogUnreadable; OSError.
        """
        self._check_is_made()
        uuids = {gtid.domain_id: domain_uuid(self.settings.uuid, gtid.domain_id) for gtid in wanted}
        places = [
            place
            for gtid in wanted
            if (place := self._behind_own(MysqlGtid(Tsid(uuids[gtid.domain_id]), gtid.sequence_number))) is not None
        ]
        if not places:
            raise PlaceUnknown(f"View {self.name} does not hold a transaction with which {wanted} ends.")
        place = max(places, key=lambda one: (one.generation, binlog_number(one.view.file), one.view.offset))
        held = {
            key: int.from_bytes(numbers[-8:], "little") - 1
            for key, numbers in self.executed(place).intervals_by_key().items()
        }
        for gtid in wanted:
            last = held.get(uuids[gtid.domain_id].bytes, 0)
            if last != gtid.sequence_number:
                raise PlaceUnknown(
                    f"No place of the source's binlogs is behind exactly {wanted}: at {place.source_text} domain "
                    f"{gtid.domain_id} is at {last}. Take the position in the source's binlogs, file and offset."
                )
        extra = {domain_uuid(self.settings.uuid, domain, number).bytes for domain in uuids for number in _EXTRAS}
        others = held.keys() - {uuid.bytes for uuid in uuids.values()} - extra
        if others:
            raise PlaceUnknown(
                f"{wanted} says nothing of {len(others)} more domains of which the source has transactions before {place.source_text}: "
                "take all of gtid_slave_pos, or gtid_binlog_pos of a server that is no replica."
            )
        return place

    def executed(self, place: ViewPlace) -> GtidSet:
        """Return all that is executed before the place. Raises: PlaceUnknown; CatalogUnreadable; OSError."""
        return executed_before(generation_path(self.directory, place.generation), self.settings, place)

    def newest_gtid(self, gno: int) -> str:
        """Return the newest GTID that the view assigned, as text; empty: there is none."""
        return f"{self.settings.uuid}:{gno}" if gno else ""

    def inside_text(self, inside: InsideTransaction) -> str:
        """Return the message about a place inside a transaction."""
        before = self._place_text(inside.before)
        if inside.after is None:
            stop = self._standing_stop()
            if stop is not None:
                return (
                    f"{inside.position} is behind {before}, before which view {self.name} stopped ({stop.reason.name}): it has nothing "
                    "from there on. 'view list' says why, and the ways on."
                )
            return (
                f"{inside.position} is behind the last place that the view has of this file, {before}: it is of another file or "
                "server, or inside a transaction whose end is not there, or the view has not come there yet ('view list' says how "
                "far it is)."
            )
        what = f"{inside.position} is inside a transaction: no set of GTIDs is executed there"
        return f"{what}. Nearest good places: {before} before, {self._place_text(inside.after)} after."

    def _standing_stop(self) -> ViewStop | None:
        """Return the stop before which the view waits; None: it goes on, or nothing is known of it."""
        try:
            return standing_stop(self.archive, self.directory, self.name, self.places.end())
        except (PlaceUnknown, CatalogUnreadable, OSError):
            return None

    def _place_text(self, place: ViewPlace) -> str:
        newest = self.newest_gtid(place.gno)
        return f"{place.source_text} (view {place.view_text}{f', {newest}' if newest else ''})"

    def _check_is_made(self) -> None:
        if not self.is_made:
            raise PlaceUnknown(f"View {self.name} is not made yet: {self.directory} has no files. Start the relay.")
