"""The failover when the followed source cannot be reached: the log names suitable sources, or the first one is taken.

A source is checked as at an attachment (`another_source`), without attaching to it. It is impossible to know from here whether the old
source still takes writes from others: the operator who promotes the new one must prevent that.

A source that answers and cannot be gone on with is never left automatically, although it was taken a moment ago: it and the archive may
differ, and a person must decide which of them is right; or what answers is not a source at all, which an operator has put there. The
log then names those of the others that are suitable, and why the rest are not.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import structlog

from relay.archive.storage.archive_errors import ArchiveError
from relay.config import FailoverMode, ServerSource
from relay.process.background import tell_fault
from relay.upstream.chosen_source import address
from relay.upstream.source.source_errors import UpstreamError
from relay.upstream.source.source_status import SourceLink

log = structlog.get_logger()

_LOOK_S: Final = 0.25
_AGAIN_S: Final = 10.0
"""The others are asked again at this interval while none of them is suitable: one may still apply what it has received."""
_MOST_REPORTED: Final = 100
"""The number of different faults that are reported."""


class Failover:
    """A search for another source while `run` runs. For the event loop's thread.

    `sources` are all of relay.toml, in order of preference. `examine(source)` is awaited and returns with what the archive could go on
    there. `take(source, why)` is awaited and follows that source from now on.
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
        self.sources = sources
        """These are the sources in relay.toml now."""
        self._mode = mode
        self._after_s = after_s
        self._link = link
        self._examine = examine
        self._take = take
        self._faults_reported: set[tuple[str, type[Exception], str]] = set()

    async def run(self, followed: Callable[[], ServerSource]) -> None:
        """Run until cancelled. `followed()` returns the source that is followed now."""
        asked_at = float("-inf")
        reported: dict[str, str] = {}
        before: tuple[float | None, UpstreamError | None] = (None, None)
        while True:
            await asyncio.sleep(_LOOK_S)
            since, refused = state = self._link.unreachable_since, self._link.given_up
            if state != before:
                asked_at, reported, before = float("-inf"), {}, state
            now = time.monotonic()
            is_due = refused is not None or (since is not None and now - since >= self._after_s)
            if not is_due or now - asked_at < _AGAIN_S:
                continue
            asked_at = now
            verdicts, first = await self._ask_others(followed())
            if (self._link.unreachable_since, self._link.given_up) != state:
                continue
            if since is not None and self._mode == "automatic" and first is not None:
                await self._take(first, f"{address(followed())} was unreachable for {now - since:.0f} s")
            elif verdicts != reported:
                reported = verdicts
                self._say(followed(), since and now - since, refused, verdicts, first)

    async def _ask_others(self, followed: ServerSource) -> tuple[dict[str, str], ServerSource | None]:
        """Return the verdict on each of the others, and the first that is suitable."""
        first: ServerSource | None = None
        verdicts: dict[str, str] = {}
        for source in self.sources:
            if address(source) == address(followed):
                continue
            try:
                verdicts[address(source)] = f"would do: {await self._examine(source)}"
            except UpstreamError as error:
                verdicts[address(source)] = f"would not do: {_with_advice(error.what, error.advice)}"
            except ArchiveError as error:
                verdicts[address(source)] = f"could not be compared with the archive: {error}"
            except Exception as fault:
                # A fault of ours with one of them ends neither the look at the others nor the relay.
                verdicts[address(source)] = self._not_looked_at(source, fault)
            else:
                first = first or source
                if self._mode == "automatic":
                    break
        return verdicts, first

    def _not_looked_at(self, source: ServerSource, fault: Exception) -> str:
        """Report the fault with its traceback, once of each kind."""
        kind = (address(source), type(fault), str(fault))
        if kind not in self._faults_reported and len(self._faults_reported) < _MOST_REPORTED:
            self._faults_reported.add(kind)
            tell_fault("candidate_not_looked_at", fault, source=address(source))
        return f"was not looked at, by a fault of binlog-relay ({type(fault).__name__}: {fault})"

    def _say(
        self,
        followed: ServerSource,
        silent_s: float | None,
        refused: UpstreamError | None,
        verdicts: dict[str, str],
        first: ServerSource | None,
    ) -> None:
        advice = ""
        facts: dict[str, object] = {}
        stop = "STOP REPLICA; "
        if refused is not None:
            facts = {"given_up": address(followed), "why": refused.name, "what": refused.what}
            advice = _with_advice(
                "A source that was given up for another reason than silence is not left by itself", refused.advice
            )
            stop = ""
        elif silent_s is not None:
            error = self._link.last_error
            facts = {
                "unreachable": address(followed),
                "for_s": round(silent_s),
                "what": error.what if error is not None else None,
            }
        if first is not None and (refused is not None or self._mode == "manual"):
            advice += (
                f" To go over to {address(first)}: {stop}CHANGE REPLICATION SOURCE TO SOURCE_HOST='{first.host}', "
                f"SOURCE_PORT={first.port}; START REPLICA at the relay. Make sure before that nobody writes to "
                f"{address(followed)} any more."
            )
        log.warning("source_candidates", **facts, verdicts=verdicts, advice=advice.strip() or None)


def _with_advice(what: str, advice: str) -> str:
    """Return the event, and the next step if there is one."""
    return f"{what.rstrip('. ')}. {advice}" if advice else what
