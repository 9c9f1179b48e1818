"""Where files of a generation were found not to be what was archived: said once for each place, known until it is repaired."""

import time
from collections.abc import Callable, Iterable
from typing import Final

from relay.archive.catalog.catalog_rows import DamagedPlace
from relay.archive.storage.archive_errors import ArchiveDamaged

_MOST_PLACES: Final = 16
"""Of one file that are noted: a stream ends at the first, and a repair puts the whole file back."""


class DamagedFiles:
    """All on the event loop.

    known: what is in the catalog. note(place, error): puts one that is new into ledger, log and catalog.
    """

    def __init__(self, known: Iterable[DamagedPlace], note: Callable[[DamagedPlace, ArchiveDamaged], None]) -> None:
        self._places: dict[str, dict[int, DamagedPlace]] = {}
        self._note = note
        for place in known:
            self._places.setdefault(place.file, {})[place.offset] = place

    def report(self, error: ArchiveDamaged) -> None:
        """Somebody met it."""
        assert error.file is not None and error.offset is not None
        places = self._places.setdefault(error.file, {})
        if error.offset in places or len(places) >= _MOST_PLACES:
            return
        place = DamagedPlace(error.file, error.offset, error.boundary, time.time(), error.what)
        places[error.offset] = place
        self._note(place, error)

    def forget(self, file: str) -> bool:
        """The file is what was archived again, or is gone. True: it was known to be damaged."""
        return self._places.pop(file, None) is not None

    def first(self, file: str) -> DamagedPlace | None:
        """The first damaged place of a file; None: none is known."""
        places = self._places.get(file)
        return places[min(places)] if places else None

    @property
    def all(self) -> list[DamagedPlace]:
        """The first place of each damaged file, by name."""
        return [places[min(places)] for _name, places in sorted(self._places.items())]

    def __len__(self) -> int:
        return len(self._places)
