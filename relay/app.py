"""The running relay: an archive, the way into it, the way out of it."""

import asyncio
import errno
import os
import signal
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Final

import structlog

from protocol.auth import Account as ReplicaAccount
from relay.archive.archive import Archive, PublishPolicy, SyncPolicy
from relay.archive.errors import ArchiveCorrupt, ArchiveError, ArchiveWriteError
from relay.archive.failure_episode import FailureEpisode
from relay.archive.files import UUID_NAME
from relay.config import Config, ConfigError, ServerSource, load_config
from relay.downstream.server import DownstreamServer
from relay.upstream.directory_source import DirectoryUpstream
from relay.upstream.errors import Trouble, UpstreamError
from relay.upstream.server_source import ServerUpstream

log = structlog.get_logger()

EXIT_FINE: Final = 0
EXIT_WRONG_USE: Final = 2
EXIT_SOURCE: Final = 3
EXIT_ARCHIVE: Final = 4
# The archive's directory cannot be made or used: nothing is damaged, archive.dir or its permissions are wrong.
_NO_PLACE_FOR_IT: Final = (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.EROFS)


def run(config: Config, config_path: Path) -> int:
    """Runs the relay until SIGTERM or SIGINT. Returns the process's exit code."""
    _report_kernel()
    loop_factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    try:
        import uvloop

        loop_factory = uvloop.new_event_loop
    except ImportError:
        log.info("event_loop", loop="asyncio", note="uvloop is not installed; it would be faster")
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(Relay(config, config_path).serve())


def _report_kernel() -> None:
    from protocol.kernel import ingest

    if not (ingest.__file__ or "").endswith(".so"):
        log.warning(
            "kernel_uncompiled",
            note="works, but many times slower: install a C compiler and reinstall with BINLOG_RELAY_KERNEL=require",
        )


class Relay:
    """One archive with its upstream and its downstream side. Wiring only."""

    def __init__(self, config: Config, config_path: Path) -> None:
        self._config = config
        self._config_path = config_path
        self._stop = asyncio.Event()
        self._archive: Archive | None = None
        self._failures = FailureEpisode()

    async def serve(self) -> int:
        """Opens, listens, follows the source, until told to stop. Returns the exit code."""
        config = self._config
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        # Its default is to end the process.
        loop.add_signal_handler(signal.SIGHUP, lambda: log.info("reload_too_early", note="the archive is being opened"))
        try:
            archive = await Archive.open(
                config.archive_directory,
                sync=SyncPolicy(config.archive.sync),
                publish=PublishPolicy(config.archive.publish),
                sync_interval_s=config.archive.sync_interval_s,
                on_failure=self._archive_failed,
            )
        except ArchiveError as error:
            what = str(error).removesuffix(f" {error.advice}")
            log.error("archive_not_opened", what=what, advice=error.advice or None)
            if isinstance(error, ArchiveWriteError) and error.errno in _NO_PLACE_FOR_IT:
                return EXIT_WRONG_USE
            return EXIT_ARCHIVE if isinstance(error, ArchiveCorrupt | ArchiveWriteError) else EXIT_WRONG_USE
        self._archive = archive
        server = DownstreamServer(
            archive,
            replica_accounts(config),
            position_wait_s=config.listen.position_wait_s,
            max_connections=config.listen.max_connections,
            handshake_timeout_s=config.listen.handshake_timeout_s,
        )
        following: asyncio.Task[UpstreamError] | None = None
        try:
            try:
                await server.start(config.listen.host, config.listen.port)
            except OSError as error:
                log.error(
                    "cannot_listen",
                    what=f"{config.listen.host}:{config.listen.port}: {error.strerror or error}",
                    advice="Another process may have the port: choose another listen.port, or stop that process. "
                    "listen.host must be an address of this machine, such as 0.0.0.0 or ::.",
                )
                return EXIT_WRONG_USE
            loop.add_signal_handler(signal.SIGHUP, self._reload, server)
            following = loop.create_task(self._upstream(archive).run())
            return await self._until_stopped(following, archive)
        finally:
            await self._shut_down(server, following, archive)

    def _upstream(self, archive: Archive) -> ServerUpstream | DirectoryUpstream:
        source = self._config.source
        if isinstance(source, ServerSource):
            return ServerUpstream(archive, source, own_uuid(self._config.archive_directory))
        return DirectoryUpstream(archive, source)

    async def _until_stopped(self, following: asyncio.Task[UpstreamError], archive: Archive) -> int:
        stopping = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait({stopping, following}, return_when=asyncio.FIRST_COMPLETED)
            if not following.done():
                return EXIT_FINE
            error = following.result()
            if archive.end is None:
                # Nothing to serve: whoever started us should hear of it.
                return EXIT_ARCHIVE if error.trouble is Trouble.ARCHIVE else EXIT_SOURCE
            log.error(
                "serving_what_is_archived",
                what=error.what,
                note="the relay no longer follows its source; replicas go on with what the archive holds",
                advice="Correct the cause and restart the relay.",
            )
            await stopping
            return EXIT_FINE
        finally:
            stopping.cancel()

    async def _shut_down(
        self, server: DownstreamServer, following: asyncio.Task[UpstreamError] | None, archive: Archive
    ) -> None:
        await server.close()
        if following is not None:
            following.cancel()
            await asyncio.wait({following})  # whatever ended it, the archive is closed
            if not following.cancelled() and (fault := following.exception()) is not None:
                log.error("source_side_failed", what=f"{type(fault).__name__}: {fault}")
        try:
            await archive.close()
        except ArchiveError as error:
            log.error("archive_not_closed_cleanly", what=str(error), advice=error.advice or None)
        log.info("stopped")

    def _archive_failed(self, error: ArchiveWriteError) -> None:
        """A full disk is said once, not again by each attempt to go on: those are in `source_lost`."""
        archived = sum(file.end for file in self._archive.files) if self._archive is not None else 0
        if self._failures.is_news(error.errno, archived, time.monotonic()):
            log.error(
                "archive_write_failed", what=error.what, file=error.file, offset=error.offset, advice=error.advice
            )

    def _reload(self, server: DownstreamServer) -> None:
        """SIGHUP: accounts are taken from the file anew; everything else needs a restart."""
        try:
            config = load_config(self._config_path)
        except ConfigError as error:
            log.error(
                "reload_refused", problems=[str(problem) for problem in error.problems], note="nothing was changed"
            )
            return
        server.replace_accounts(replica_accounts(config))
        unchanged = config.model_copy(update={"accounts": self._config.accounts}) == self._config
        log.info(
            "reloaded",
            accounts=len(config.accounts),
            note=None if unchanged else "changes outside [[account]] take effect at the next start",
        )


def replica_accounts(config: Config) -> list[ReplicaAccount]:
    """The configured logins as the protocol checks them."""
    return [
        ReplicaAccount(user=account.user, native_hash=account.native_hash(), markers=account.markers)
        for account in config.accounts
    ]


def own_uuid(directory: Path) -> str:
    """The relay's own server_uuid, made once and kept beside the archive. Blocking; a few bytes."""
    path = directory / UUID_NAME
    try:
        return str(uuid.UUID(path.read_text(encoding="ascii").strip()))
    except FileNotFoundError:
        made = str(uuid.uuid4())
    except ValueError:
        log.warning("server_uuid_unreadable", file=str(path), note="a new one is made")
        made = str(uuid.uuid4())
    temporary = path.with_suffix(".tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o640)
    with open(descriptor, "w", encoding="ascii") as file:
        file.write(made + "\n")
        file.flush()
        os.fsync(descriptor)
    temporary.rename(path)
    return made
