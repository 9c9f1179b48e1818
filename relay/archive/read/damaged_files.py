"""The places where files of a generation were found not to be what was archived: each is reported once, and known until it is
repaired."""

import time
from collections.abc import Callable, Iterable
from typing import Final

from relay.archive.catalog.catalog_rows import DamagedPlace
from relay.archive.storage.archive_errors import ArchiveDamaged

_MOST_PLACES: Final = 16
"""The most places of one file that are noted: a stream ends at the first, and a repair puts the whole file back."""


class DamagedFiles:
    """All methods are for the event loop.

    known: the places in the catalog. note(place, error): puts a new one into ledger, log and catalog.
    """

    def __init__(self, known: Iterable[DamagedPlace], note: Callable[[DamagedPlace, ArchiveDamaged], None]) -> None:
        self._places: dict[str, dict[int, DamagedPlace]] = {}
        self._note = note
        for place in known:
            self._places.setdefault(place.file, {})[place.offset] = place

    def report(self, error: ArchiveDamaged) -> None:
        """Report damage that was met."""
        assert error.file is not None and error.offset is not None
        places = self._places.setdefault(error.file, {})
        if error.offset in places or len(places) >= _MOST_PLACES:
            return
        place = DamagedPlace(error.file, error.offset, error.boundary, time.time(), error.what)
        places[error.offset] = place
        self._note(place, error)

    def forget(self, file: str) -> bool:
        """Forget a file that was repaired or removed. Return whether it was known to be damaged."""
        return self._places.pop(file, None) is not None

    def first(self, file: str) -> DamagedPlace | None:
        """Return the first damaged place of a file; None: none is known."""
        places = self._places.get(file)
        return places[min(places)] if places else None

    @property
    def all(self) -> list[DamagedPlace]:
        """The first place of each damaged file, by name."""
        return [places[min(places)] for _name, places in sorted(self._places.items())]

    def __len__(self) -> int:
        return len(self._places)
