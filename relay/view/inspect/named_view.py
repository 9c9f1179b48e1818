"""A view as it is named from outside, and its places: by the source's position, by its own, by GTID."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mysql_gtid import MysqlGtid
from protocol.position import Position
from relay.archive.catalog.generation_directories import begun_generations, generation_path
from relay.archive.inspect.listing import read_ledger
from relay.archive.inspect.transaction_search import find_gtid
from relay.archive.storage.files import CATALOG_NAME
from relay.view.generations.view_generations import made_generations, qualified
from relay.view.inspect.executed_gtids import executed_before
from relay.view.kept_settings import view_directory
from relay.view.rules.settings import ViewSettings
from relay.view.view import skips_of
from relay.view.view_lookup import ViewLookup
from relay.view.view_place import InsideTransaction, PlaceFinder, PlaceUnknown, ViewPlace


def named_view(archive: Path, settings: ViewSettings, generations: Sequence[Path] | None = None) -> "NamedView":
    """Of the files that there are. archive: the source's directory. generations: the directories of those that have begun, where
    they are known: to look for them takes a while among 10,000 files. Blocking. Raises: CatalogUnreadable; OSError.
    """
    if generations is None:
        generations = [path for _number, path in begun_generations(archive)]
    directory = view_directory(archive, settings.name)
    skips = skips_of([row for path in generations for row in read_ledger(path)], settings.name)
    return NamedView(archive, directory, settings, ViewLookup(archive, directory, settings, skips))


class NamedView(NamedTuple):
    """A view that relay.toml names. archive: the source's directory; directory: the view's own. All that is asked blocks."""

    archive: Path
    directory: Path
    settings: ViewSettings
    places: PlaceFinder

    @property
    def name(self) -> str:
        """As in `[[view]]`."""
        return self.settings.name

    @property
    def is_made(self) -> bool:
        """Whether anything of it is there."""
        return (self.directory / CATALOG_NAME).exists()

    def of_source(self, position: Position) -> ViewPlace:
        """Raises: InsideTransaction; PlaceUnknown; OSError."""
        self._check_is_made()
        return self.places.of_source(position)

    def of_view(self, position: Position) -> ViewPlace:
        """Raises: InsideTransaction; PlaceUnknown; OSError."""
        self._check_is_made()
        return self.places.of_view(position)

    def behind(self, gtid: MysqlGtid) -> ViewPlace:
        """Behind this transaction, whoever gave it its GTID. Raises: PlaceUnknown; CatalogUnreadable; OSError."""
        self._check_is_made()
        if self.settings.gtids == "assign" and gtid.tsid.key == self.settings.uuid.bytes:
            return self.places.of_gno(gtid.gno)
        for made in made_generations(self.archive, self.directory):
            found = find_gtid(made.directory, gtid)
            if found is not None:
                return self.places.of_view(Position(qualified(made.number, found.file), found.end))
        raise PlaceUnknown(f"View {self.name} does not hold transaction {gtid.tsid}:{gtid.gno}.")

    def executed(self, place: ViewPlace) -> GtidSet:
        """All that is executed before the place. Raises: PlaceUnknown; CatalogUnreadable; OSError."""
        return executed_before(generation_path(self.directory, place.generation), self.settings, place)

    def newest_gtid(self, gno: int) -> str:
        """Of those that the view assigned, in words; empty: none."""
        return f"{self.settings.uuid}:{gno}" if gno else ""

    def inside_text(self, inside: InsideTransaction) -> str:
        """What to tell who asked for a place inside a transaction."""
        nearest = [f"{self._place_text(inside.before)} before"]
        nearest.append("none after yet" if inside.after is None else f"{self._place_text(inside.after)} after")
        what = f"{inside.position} is inside a transaction: no set of GTIDs is executed there"
        return f"{what}. Nearest good places: {', '.join(nearest)}."

    def _place_text(self, place: ViewPlace) -> str:
        newest = self.newest_gtid(place.gno)
        return f"{place.source_text} (view {place.view_text}{f', {newest}' if newest else ''})"

    def _check_is_made(self) -> None:
        if not self.is_made:
            raise PlaceUnknown(f"View {self.name} is not made yet: {self.directory} has no files. Start the relay.")
