"""Keeps a bucket as the archive's second copy while the relay runs, in a thread of its own that nobody waits for."""

import asyncio
import contextlib
import random
import threading
import time
from typing import Final

import structlog

from relay.archive.archive import Archive
from relay.archive.catalog.generation_directories import FIRST
from relay.mirror.mirror_pass import MirrorPass, MirrorStopped
from relay.mirror.mirror_picture import PicturedFile, PicturedGeneration
from relay.mirror.mirror_status import MirrorStatus
from relay.object_store.archive_object import Ownership
from relay.object_store.object_errors import MirrorRefused, ObjectStoreError, PrefixBusy
from relay.object_store.object_store import ObjectStore
from relay.object_store.store_options import StoreOptions
from relay.packed.key_ring import KeyRing
from relay.packed.packed_errors import PackedError
from relay.packed.packing import PackOptions
from relay.packing_process.packer import ProcessPacker
from relay.process.background import begin_task

log = structlog.get_logger("relay.mirror")

BEHIND_S: Final = 60.0
"""A bucket that is behind for so long is told of, in the log and in the ledger."""
_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 60.0
_RENEW_S: Final = 15.0
_END_S: Final = 3.0


class Mirror:
    """All on the event loop but for the passes. writer: uuid of the relay, token of this process.

    interval_s: so long what is published waits at least for a part of its own.
    """

    def __init__(
        self,
        archive: Archive,
        options: StoreOptions,
        keys: KeyRing | None,
        packing: PackOptions,
        writer: tuple[str, str],
        interval_s: float,
    ) -> None:
        self._archive = archive
        self._stop = threading.Event()
        self._store = ObjectStore(options, self._stop)
        uuid, token = writer
        ownership = Ownership(self._store, uuid, archive.directory, token=token)
        self._pass = MirrorPass(self._store, ownership, keys, ProcessPacker(), packing, self._stop)
        self._interval_s = interval_s
        self._moved = asyncio.Event()
        self._ended = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._state = "starting"
        self._failures = 0
        self._trouble = ""
        self._behind_since: float | None = None
        """By the monotonic clock; None: all that was published is in the bucket, as far as is known."""
        self._told_behind = False

    def begin(self) -> None:
        """Starts to copy."""
        self._archive.watch(self._has_moved)
        self._task = begin_task(self._run(), "copying the archive into the bucket")

    async def close(self) -> None:
        """Ends it, within a few seconds whatever the bucket does."""
        self._stop.set()
        self._archive.unwatch(self._has_moved)
        self._moved.set()
        self._ended.set()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=_END_S)
            self._task.cancel()

    def status(self) -> MirrorStatus:
        """Now."""
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
            self._trouble,
        )

    def _has_moved(self) -> None:
        if self._behind_since is None:
            self._behind_since = time.monotonic()
        self._moved.set()

    async def _run(self) -> None:
        pause = _FIRST_PAUSE_S
        while not self._stop.is_set():
            self._moved.clear()
            began = time.monotonic()
            picture = self._picture()
            try:
                await self._in_thread(picture)
            except MirrorStopped:
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
            self._succeeded(began)
            await self._wait(_RENEW_S, self._moved)
            await self._wait(max(0.0, began + self._interval_s - time.monotonic()), self._ended)

    async def _in_thread(self, picture: list[PicturedGeneration]) -> None:
        """One pass. A daemon thread: a call to the bucket that hangs does not hold up the end of the process."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def settle(error: BaseException | None) -> None:
            if done.done():
                return
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)

        def run() -> None:
            failure: BaseException | None = None
            try:
                self._pass.run(picture)
            except BaseException as error:
                failure = error
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(settle, failure)

        threading.Thread(target=run, name="archive-mirror", daemon=True).start()
        await done

    async def _wait(self, seconds: float, event: asyncio.Event) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(event.wait(), seconds)

    def _picture(self) -> list[PicturedGeneration]:
        """What is not known to be in the bucket: of 10,000 files those that came last."""
        found = []
        for generation in self._archive.all:
            done = self._pass.done.get(generation.number, -1)
            files: list[PicturedFile] = []
            for file in reversed(generation.files):
                if file.sealed and file.number <= done:
                    break
                files.append(PicturedFile(file.name, file.number, file.end, file.sealed))
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
        # What was published meanwhile waits since then at the earliest.
        pending = self._pass.pending_bytes(self._picture())
        self._behind_since = began if pending else None

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
