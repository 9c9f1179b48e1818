"""Maintains a bucket as the archive's second copy while the relay runs, in a thread of its own that delays no other work."""

import asyncio
import contextlib
import random
import threading
import time
from dataclasses import replace
from typing import Final

import structlog

from relay.archive.archive import Archive
from relay.archive.catalog.generation_directories import FIRST
from relay.archive.storage.archived_file import ArchivedFile
from relay.mirror.mirror_pass import MirrorPass
from relay.mirror.mirror_picture import PicturedFile, PicturedGeneration
from relay.mirror.mirror_status import MirrorStatus
from relay.object_store.archive_object import Ownership
from relay.object_store.object_errors import MirrorRefused, ObjectStoreError, PrefixBusy
from relay.object_store.object_store import ObjectStore
from relay.object_store.store_options import StoreOptions
from relay.packed.packed_errors import PackedError
from relay.packing_process.compression_settings import CompressionSettings
from relay.packing_process.packed_copy import CopyStopped
from relay.process.background import begin_task
from relay.process.slow_thread import take_least_priority
from relay.retention.decision import Place

log = structlog.get_logger("relay.mirror")

BEHIND_S: Final = 60.0
"""A bucket with a larger lag is reported, in the log and in the ledger."""
_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 60.0
_RENEW_S: Final = 15.0
_END_S: Final = 3.0
_BEGIN_S: Final = 60.0
"""The time for the start of the process that packs."""
_LOST_ADVICE: Final = (
    "Nothing can be done about these. The ledger's mirror_behind says why the bucket was behind; give the disk more room, or "
    "[retention] lower limits, so that it can wait for the bucket."
)
_SHOWN_FILES: Final = 5
_OTHERS_ADVICE: Final = (
    "It is copied again now. Find out who else writes to this bucket. Then stop the relay and run `archive verify`: it compares all "
    "binlogs there."
)
_MANIFEST_ADVICE: Final = (
    "What is in the bucket is compared with the archive, and copied again where nothing says that it is this archive's. Find out who "
    "else writes to this bucket. Then stop the relay and run `archive verify --deep`."
)
_LISTED_ADVICE: Final = (
    "Another process of this archive wrote there for a while, or binlog-relay.json was removed: what is in the bucket was looked at "
    "again, and what lacks is copied. Find that process: two relays on copies of one archive must not run."
)


class Mirror:
    """The mirror. It is used on the event loop except for the passes. `writer` is uuid of the relay and token of this process.

    `interval_s` is the least time that published bytes wait for a part of their own.
    """

    def __init__(
        self,
        archive: Archive,
        options: StoreOptions,
        means: CompressionSettings,
        writer: tuple[str, str],
        interval_s: float,
    ) -> None:
        self._archive = archive
        self._stop = threading.Event()
        self._store = ObjectStore(options, self._stop)
        uuid, token = writer
        ownership = Ownership(self._store, uuid, archive.directory, token=token)
        self._packer = means.packer
        self._loop = asyncio.get_running_loop()
        means = replace(means, begin=self._begin_packer)
        self._pass = MirrorPass(self._store, ownership, means, self._stop)
        self._interval_s = interval_s
        self._moved = asyncio.Event()
        self._ended = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._state = "starting"
        self._failures = 0
        self._trouble = ""
        self._behind_since: float | None = None
        """The start of the lag, by the monotonic clock; None if all that was published is in the bucket, as far as is known."""
        self._told_behind = False
        self._told_left_out: dict[tuple[int, str], str] = {}
        self._lost_files = 0
        """The number of files that were purged before they were copied."""

    def begin(self) -> None:
        """Start to copy."""
        self._archive.watch(self._has_moved)
        self._task = begin_task(self._run(), "copying the archive into the bucket")

    async def close(self) -> None:
        """End it, within a few seconds whatever the bucket does."""
        self._stop.set()
        self._archive.unwatch(self._has_moved)
        self._moved.set()
        self._ended.set()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=_END_S)
            self._task.cancel()

    def status(self) -> MirrorStatus:
        """Return the present status."""
        pending = self._pass.pending_bytes(self._picture()) if self._state != "starting" else 0
        since = self._behind_since
        return MirrorStatus(
            self._store.url(),
            self._state,
            pending,
            0.0 if since is None or not pending else time.monotonic() - since,
            self._pass.files,
            self._pass.part_count,
            self._failures,
            self._store.counts.bytes_written,
            self._trouble or self._left_out_text(),
            len(self._pass.left_out),
            self._lost_files,
            self._pass.manifest.manifest.sequence,
        )

    def _left_out_text(self) -> str:
        left_out = sorted((number, name, one.what) for (number, name), one in list(self._pass.left_out.items()))
        return "; ".join(f"{name} is not copied: {what}" for _number, name, what in left_out[:_SHOWN_FILES])

    def first_lacking(self) -> Place | None:
        """Return, by the numbers of generation and file, the first one that must be copied and is not."""
        for generation in self._picture():
            for file in generation.files:
                if (generation.number, file.name) not in self._pass.left_out:
                    return generation.number, file.number
        return None

    def _has_moved(self) -> None:
        if self._behind_since is None:
            self._behind_since = time.monotonic()
        self._moved.set()

    async def _run(self) -> None:
        try:
            await self._follow()
        finally:
            await asyncio.to_thread(self._packer.close)

    async def _follow(self) -> None:
        pause = _FIRST_PAUSE_S
        while not self._stop.is_set():
            self._moved.clear()
            began, lost = time.monotonic(), self._pass.times_lost
            picture = self._picture()
            try:
                try:
                    is_known = await self._in_thread(picture)
                finally:
                    self._tell_left_out()
                    self._tell_lost(picture)
            except CopyStopped:
                return
            except (PrefixBusy, ObjectStoreError, PackedError, OSError, EOFError) as error:
                if self._stop.is_set():
                    return
                self._failed(error)
                await self._wait(random.uniform(pause / 2, pause), self._ended)
                pause = min(2 * pause, _LONGEST_PAUSE_S)
                continue
            except MirrorRefused as error:
                self._state, self._trouble = "refused", str(error)
                log.error("mirror_refused", what=str(error), advice="Correct it, then restart the relay.")
                self._archive.current.append_ledger("mirror_refused", "", -1, str(error))
                return
            pause = _FIRST_PAUSE_S
            if not is_known:
                if self._pass.times_lost != lost:
                    log.warning("mirror_listed_again", url=self._store.url(), advice=_LISTED_ADVICE)
                continue
            self._succeeded(began)
            await self._wait(_RENEW_S, self._moved)
            await self._wait(max(0.0, began + self._interval_s - time.monotonic()), self._ended)

    async def _in_thread(self, picture: list[PicturedGeneration]) -> bool:
        """Run one pass; return whether what is known of the bucket is still valid.

        It runs in a daemon thread: a call to the bucket that hangs does not delay the end of the process.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[bool] = loop.create_future()

        def settle(is_known: bool, error: BaseException | None) -> None:
            if done.done():
                return
            if error is None:
                done.set_result(is_known)
            else:
                done.set_exception(error)

        def run() -> None:
            failure: BaseException | None = None
            is_known = False
            take_least_priority()
            try:
                is_known = self._pass.run(picture)
            except BaseException as error:
                failure = error
            with contextlib.suppress(RuntimeError):  # the loop is closed: no code waits
                loop.call_soon_threadsafe(settle, is_known, failure)

        threading.Thread(target=run, name="archive-mirror", daemon=True).start()
        return await done

    async def _wait(self, seconds: float, event: asyncio.Event) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(event.wait(), seconds)

    def _begin_packer(self) -> None:
        """Begin the packer in the pass's thread, whose priority is too low for starting the process, as `ProcessPacker.begin`
        explains. Raises: OSError."""
        begun = asyncio.run_coroutine_threadsafe(asyncio.to_thread(self._packer.begin, urgent=True), self._loop)
        begun.result(_BEGIN_S)

    def _picture(self) -> list[PicturedGeneration]:
        """Return what is not known to be in the bucket: of 10,000 files those that came last, and those that were left out."""
        found = []
        for generation in self._archive.all:
            done = self._pass.done.get(generation.number, -1)
            files: list[PicturedFile] = []
            for file in reversed(generation.files):
                if file.sealed and file.number <= done:
                    break
                files.append(_pictured(file))
            left_out = (
                generation.file(name) for number, name in list(self._pass.left_out) if number == generation.number
            )
            again = (_pictured(file) for file in left_out if file is not None and file.number <= done)
            files += sorted(again, key=lambda file: -file.number)
            folder = "" if generation.number == FIRST else f"{generation.directory.name}/"
            found.append(PicturedGeneration(generation.number, generation.directory, folder, tuple(reversed(files))))
        return found

    def _succeeded(self, began: float) -> None:
        if self._state != "following":
            log.info("mirror_follows", url=self._store.url(), files=self._pass.files, parts=self._pass.part_count)
        self._state, self._trouble = "following", ""
        if self._told_behind:
            self._told_behind = False
            log.info("mirror_caught_up", url=self._store.url())
        # Bytes that were published meanwhile have waited since then at the earliest.
        pending = self._pass.pending_bytes(self._picture())
        self._behind_since = began if pending else None

    def _tell_left_out(self) -> None:
        """Report new files that are not copied, or are copied again."""
        for what in [self._pass.troubles.pop(0) for _ in range(len(self._pass.troubles))]:
            log.error("mirror_manifest_changed", what=what, url=self._store.url(), advice=_MANIFEST_ADVICE)
            self._archive.current.append_ledger("mirror_manifest_changed", "", -1, f"{what} {_MANIFEST_ADVICE}")
        for name, what in [self._pass.others.pop(0) for _ in range(len(self._pass.others))]:
            log.warning("mirror_copied_again", file=name, what=what, url=self._store.url(), advice=_OTHERS_ADVICE)
        held = {one.number: one for one in self._archive.all}
        left_out = dict(self._pass.left_out)
        for key, one in left_out.items():
            number, name = key
            generation = held.get(number)
            if generation is None or generation.file(name) is None:
                self._pass.left_out.pop(key, None)  # it was purged
            elif self._told_left_out.get(key) != one.what:
                self._told_left_out[key] = one.what
                log.error("mirror_left_out", file=name, what=one.what, advice=one.advice)
                text = f"It is not in {self._store.url()}, and those behind it are copied: {one.what}. {one.advice}"
                generation.note_once("mirror_left_out", name, one.end, text)
        for key in self._told_left_out.keys() - left_out.keys():
            del self._told_left_out[key]
            log.info("mirror_left_out_no_more", file=key[1], note="it was copied, or is not in the archive any more")

    def _tell_lost(self, picture: list[PicturedGeneration]) -> None:
        """Report what was purged meanwhile and is not in the bucket."""
        held = {one.number: one for one in self._archive.all}
        lost: list[PicturedFile] = []
        for pictured in picture:
            generation, done = held.get(pictured.number), self._pass.done.get(pictured.number, -1)
            lost += (
                file
                for file in pictured.files
                if file.number > done and (generation is None or generation.file(file.name) is None)
            )
        if not lost:
            return
        self._lost_files += len(lost)
        size = sum(file.end for file in lost)
        files = lost[0].name if len(lost) == 1 else f"{len(lost)} binlogs, {lost[0].name} to {lost[-1].name},"
        what = f"{files} ({size} bytes) were purged before they were copied into {self._store.url()}: the copy has a hole there"
        log.error("mirror_lost", what=what, files=len(lost), bytes=size, advice=_LOST_ADVICE)
        self._archive.current.append_ledger("mirror_lost", lost[0].name, -1, f"{what}. {_LOST_ADVICE}")

    def _failed(self, error: Exception) -> None:
        self._failures += 1
        self._state, self._trouble = "behind", str(error)
        now = time.monotonic()
        if self._behind_since is None:
            self._behind_since = now
        log.warning("mirror_attempt_failed", what=str(error), failures=self._failures)
        if now - self._behind_since >= BEHIND_S and not self._told_behind:
            self._told_behind = True
            text = f"The copy in {self._store.url()} is behind: {error}"
            log.error("mirror_behind", what=text, lag_bytes=self._pass.pending_bytes(self._picture()))
            self._archive.current.append_ledger("mirror_behind", "", -1, text)


def _pictured(file: ArchivedFile) -> PicturedFile:
    return PicturedFile(file.name, file.number, file.end, file.sealed)
