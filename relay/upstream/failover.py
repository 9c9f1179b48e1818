"""Another source when the one that is followed cannot be reached: which of them would do is said, or the first that does is taken.

Whether one would do is found out as at an attachment (`another_source`), without attaching to it. Nobody can tell from here
whether the old source still takes writes from others: to keep it from that is for whoever promotes the new one.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import structlog

from relay.archive.errors import ArchiveError
from relay.config import FailoverMode, ServerSource
from relay.upstream.chosen_source import address
from relay.upstream.errors import UpstreamError
from relay.upstream.status import SourceLink

log = structlog.get_logger()

_LOOK_S: Final = 0.25
_AGAIN_S: Final = 10.0
"""So often the others are asked again while none of them would do: one may still apply what it has received."""


class Failover:
    """Looks while `run` runs. For the event loop's thread.

    sources: all of relay.toml, in order of preference. examine(source): awaited; with what the archive could go on there.
    take(source, why): awaited; follows it from now on.
    """

    def __init__(
        self,
        sources: Sequence[ServerSource],
        mode: FailoverMode,
        after_s: float,
        link: SourceLink,
        examine: Callable[[ServerSource], Awaitable[str]],
        take: Callable[[ServerSource, str], Awaitable[None]],
    ) -> None:
        self._sources = sources
        self._mode = mode
        self._after_s = after_s
        self._link = link
        self._examine = examine
        self._take = take

    async def run(self, followed: Callable[[], ServerSource]) -> None:
        """For ever. `followed()`: the source that is followed now."""
        asked_at = float("-inf")
        said: dict[str, str] = {}
        while True:
            await asyncio.sleep(_LOOK_S)
            since = self._link.unreachable_since
            if since is None:
                asked_at, said = float("-inf"), {}
                continue
            now = time.monotonic()
            if now - since < self._after_s or now - asked_at < _AGAIN_S:
                continue
            asked_at = now
            verdicts, first = await self._ask_others(followed())
            if self._mode == "automatic" and first is not None and self._link.unreachable_since == since:
                await self._take(first, f"{address(followed())} was unreachable for {now - since:.0f} s")
            elif verdicts != said:
                said = verdicts
                self._say(followed(), now - since, verdicts, first)

    async def _ask_others(self, followed: ServerSource) -> tuple[dict[str, str], ServerSource | None]:
        """What each of the others is good for, and the first that would do."""
        first: ServerSource | None = None
        verdicts: dict[str, str] = {}
        for source in self._sources:
            if address(source) == address(followed):
                continue
            try:
                verdicts[address(source)] = f"would do: {await self._examine(source)}"
            except UpstreamError as error:
                verdicts[address(source)] = f"would not do: {error.what}"
            except ArchiveError as error:
                verdicts[address(source)] = f"was not looked at: {error}"
            else:
                first = first or source
                if self._mode == "automatic":
                    break
        return verdicts, first

    def _say(
        self, followed: ServerSource, silent_s: float, verdicts: dict[str, str], first: ServerSource | None
    ) -> None:
        advice = None
        if first is not None and self._mode == "manual":
            advice = (
                f"To go over to it: STOP REPLICA; CHANGE REPLICATION SOURCE TO SOURCE_HOST='{first.host}', "
                f"SOURCE_PORT={first.port}; START REPLICA at the relay. Make sure before that nobody writes to "
                f"{address(followed)} any more."
            )
        log.warning(
            "source_candidates", unreachable=address(followed), for_s=round(silent_s), verdicts=verdicts, advice=advice
        )
