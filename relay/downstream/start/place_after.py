"""The place in the newest generation at which an ended one ends, and the wait of many replicas for it."""

import asyncio
from dataclasses import dataclass
from typing import Final

from protocol.errors import Malformed
from relay.archive.archive import Archive
from relay.archive.generation import Generation
from relay.downstream.gtid_filter.gtid_lookup import GtidLookup
from relay.downstream.start.same_place import SamePlace, same_place
from relay.process.background import begin_task

# Seconds between two looks for what the next source must still deliver; if a look takes long, the wait is this multiple of it.
_AGAIN_S: Final = 0.2
_REST: Final = 4
# The errors of an archive that cannot be read, which end the search for all who wait for it.
_TOLD: Final = (OSError, Malformed)


async def place_after(archive: Archive, gtids: GtidLookup, generation: Generation) -> SamePlace | None:
    """Return the place in the newest generation that equals this generation's end; None: the source must still deliver it.

    Raises: OSError, Malformed.
    """
    if generation is archive.current or not archive.holds(generation):
        return SamePlace(None, "its files were purged")
    executed = generation.executed
    return await gtids.ask_of(archive.current, lambda archived: same_place(archived, executed))


async def rest(took_s: float) -> None:
    """Wait between two looks for what must still come. took_s: the duration of the last one, with its wait for a thread."""
    await asyncio.sleep(max(_AGAIN_S, _REST * took_s))


@dataclass(slots=True)
class _Search:
    task: asyncio.Task[SamePlace]
    waiting: int = 0


class PlaceSearches:
    """Searches for the place after each ended generation, one for all replicas that wait for it. On the event loop."""

    def __init__(self, archive: Archive, gtids: GtidLookup) -> None:
        self._archive = archive
        self._gtids = gtids
        self._searches: dict[Generation, _Search] = {}

    async def find(self, ended: Generation) -> SamePlace:
        """Return the place once the source has delivered it. Raises: OSError, Malformed."""
        search = self._searches.get(ended)
        if search is None:
            looking = begin_task(self._look(ended), "looking for the place after a generation", expected=_TOLD)
            search = self._searches[ended] = _Search(looking)
        search.waiting += 1
        try:
            return await asyncio.shield(search.task)
        finally:
            search.waiting -= 1
            if search.task.done() or not search.waiting:
                search.task.cancel()
                # A later caller begins another search.
                if self._searches.get(ended) is search:
                    del self._searches[ended]

    async def _look(self, ended: Generation) -> SamePlace:
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            place = await place_after(self._archive, self._gtids, ended)
            if place is not None:
                return place
            await rest(loop.time() - began)
