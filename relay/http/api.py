"""/api/v1/: the answer to each question."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from relay.archive.archive import Archive
from relay.archive.catalog.catalog import CatalogUnreadable
from relay.archive.generation import Generation
from relay.archive.read.position_check import PositionCheck, Verdict
from relay.archive.storage.archive_errors import ArchiveError
from relay.archive_inspection.listing import newest_ledger_rows
from relay.http.answers import json_answers as answers
from relay.http.answers.archive_map import MappedGeneration, archive_map
from relay.http.answers.mirror_answers import mirror
from relay.http.answers.openapi import PATHS, document
from relay.http.answers.retention_answers import retention
from relay.http.answers.tier_answers import tiers
from relay.http.facts.relay_watch import RelayWatch
from relay.http.query_parameters import QueryParameters, Unanswerable

Json = dict[str, Any]
Find = Callable[[QueryParameters], Awaitable[Json]]
InThread = Callable[..., Awaitable[Any]]

_DEEPEST_LEDGER_ROW: Final = 10_000
_MOST_WAITING: Final = 8
_LONGEST_NAME: Final = 512


class Api:
    """Answers questions by their names. in_thread(function, *arguments): calls it off the event loop."""

    def __init__(self, watch: RelayWatch, ready_behind_s: float, version: str, in_thread: InThread) -> None:
        self._watch = watch
        self._ready_behind_s = ready_behind_s
        self._version = version
        self._in_thread = in_thread
        self._asking = asyncio.Lock()
        """Held while the disk is read for a question: however many ask, and how often, a thread stays free for replicas' questions."""
        self._waiting = 0
        self._finds: Mapping[str, Find] = {
            "overview": self._overview,
            "source": self._source,
            "archive": self._archive,
            "disk": self._disk,
            "files": self._files,
            "map": self._map,
            "replicas": self._replicas,
            "views": self._views,
            "ledger": self._ledger,
            "scrub": self._scrub,
            "retention": self._retention,
            "tiers": self._tiers,
            "mirror": self._bucket_copy,
            "history": self._history,
            "positions": self._position,
        }

    async def answer(self, name: str, values: Mapping[str, str]) -> Json:
        """Return the answer. Raises: Unanswerable."""
        if name == "openapi.json":
            return document(self._version)
        find = self._finds.get(name)
        if find is None:
            raise Unanswerable(404, "path_unknown", "there is no such path; /api/v1/openapi.json names all")
        return await find(QueryParameters(values, PATHS[name][2]))

    @property
    def _mirror(self) -> Archive:
        return self._watch.archive

    async def _overview(self, _query: QueryParameters) -> Json:
        return answers.overview(self._watch.snapshot(), self._ready_behind_s, self._version)

    async def _source(self, _query: QueryParameters) -> Json:
        return answers.source(self._watch.snapshot())

    async def _archive(self, _query: QueryParameters) -> Json:
        return answers.archive(self._watch.snapshot())

    async def _disk(self, _query: QueryParameters) -> Json:
        return answers.disk(self._watch.snapshot())

    async def _retention(self, _query: QueryParameters) -> Json:
        return retention(self._watch.snapshot().retention)

    async def _tiers(self, _query: QueryParameters) -> Json:
        shot = self._watch.snapshot()
        return tiers(shot.tiers, shot.frames)

    async def _bucket_copy(self, _query: QueryParameters) -> Json:
        return mirror(self._watch.snapshot().mirror)

    async def _scrub(self, _query: QueryParameters) -> Json:
        return answers.scrub(self._watch.snapshot())

    async def _views(self, _query: QueryParameters) -> Json:
        return answers.views(self._watch.snapshot())

    async def _replicas(self, query: QueryParameters) -> Json:
        offset, limit = _paging(query)
        return dict(await self._in_thread(answers.replicas, self._watch.snapshot(), offset, limit))

    async def _history(self, query: QueryParameters) -> Json:
        resolution = query.word("resolution", "coarse", ("coarse", "fine"))
        return answers.history(self._watch.history, resolution)

    async def _files(self, query: QueryParameters) -> Json:
        offset, limit = _paging(query)
        rows: list[Json] = []
        passed = 0
        for one in self._mirror.all:
            start = max(0, offset - passed)
            damaged = _damaged(one)
            for file in one.files[start : start + limit - len(rows)]:
                rows.append(answers.file_row(one.number, file, file.name in damaged))
            passed += len(one.files)
        return answers.page_of(rows, passed, offset, limit)

    async def _map(self, _query: QueryParameters) -> Json:
        generations = [
            MappedGeneration(one.number, tuple(one.files), _damaged(one), one.gap.text if one.gap is not None else "")
            for one in self._mirror.all
        ]
        return dict(await self._alone(self._in_thread(archive_map, generations)))

    async def _ledger(self, query: QueryParameters) -> Json:
        offset = query.whole("offset", 0, 0, _DEEPEST_LEDGER_ROW)
        limit = query.whole("limit", answers.USUAL_ON_A_PAGE, 1, answers.MOST_ON_A_PAGE)
        try:
            rows = await self._alone(self._in_thread(newest_ledger_rows, self._mirror.directory, offset + limit + 1))
        except (CatalogUnreadable, OSError, sqlite3.Error) as error:
            raise Unanswerable(503, "ledger_unreadable", "the ledger cannot be read now; try again") from error
        page = [answers.ledger_row(number, row) for number, row in rows[offset : offset + limit]]
        following = offset + limit if len(rows) > offset + limit <= _DEEPEST_LEDGER_ROW else None
        return {"items": page, "offset": offset, "limit": limit, "next_offset": following}

    async def _position(self, query: QueryParameters) -> Json:
        file = query.text("file", _LONGEST_NAME)
        offset = query.whole("offset", None, 0)
        wanted = query.whole("generation", 0, 1)
        generations = [one for one in self._mirror.all if wanted in (0, one.number)]
        if not generations:
            raise Unanswerable(400, "parameter_wrong", f"the archive has no generation {wanted}")
        generation = next((one for one in reversed(generations) if one.file(file) is not None), generations[-1])
        try:
            check: PositionCheck = await self._alone(generation.check_position(file, offset))
        except ArchiveError as error:
            raise Unanswerable(503, "file_damaged", cause=error) from error
        known = generation.number if generation.file(file) is not None else None
        return {
            "generation": known,
            "file": file,
            "offset": offset,
            "verdict": check.verdict.value,
            "before": check.before,
            "after": check.after,
            "transaction": {"start": check.group[0], "end": check.group[1]} if check.group is not None else None,
            "text": _told(check),
        }

    async def _alone(self, finding: Awaitable[Any]) -> Any:
        """Await one at a time. Raises: Unanswerable if too many wait already."""
        if self._waiting >= _MOST_WAITING:
            if asyncio.iscoroutine(finding):
                finding.close()
            raise Unanswerable(503, "busy", "too many ask for what is read from the disk; try again")
        self._waiting += 1
        try:
            async with self._asking:
                return await finding
        finally:
            self._waiting -= 1


def _paging(query: QueryParameters) -> tuple[int, int]:
    limit = query.whole("limit", answers.USUAL_ON_A_PAGE, 1, answers.MOST_ON_A_PAGE)
    return query.whole("offset", 0, 0), limit


def _damaged(generation: Generation) -> frozenset[str]:
    return frozenset(place.file for place in generation.damaged_files.all)


_TEXTS: Final = {
    Verdict.BOUNDARY: "a replica may start here",
    Verdict.INSIDE_TRANSACTION: "inside a transaction: a replica that starts here would lose a part of it",
    Verdict.INSIDE_EVENT: "inside an event: nothing begins here",
    Verdict.BEFORE_START: "inside the file's magic: its first event is at 4",
    Verdict.PAST_END: "behind the end of this file",
    Verdict.UNKNOWN_FILE: "the archive has no such file",
    Verdict.FUTURE: "behind the archive's end: the source may have it",
}


def _told(check: PositionCheck) -> str:
    return _TEXTS[check.verdict]
