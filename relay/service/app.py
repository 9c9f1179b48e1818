"""The running relay: an archive, the way into it, the way out of it."""

import asyncio
import os
import secrets
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import structlog

from protocol.auth.account import Account as ReplicaAccount
from protocol.auth.accounts import SECRET_BYTES
from protocol.auth.host_pattern import HostPattern
from protocol.errors import ExitCode
from relay.admin.console import Console
from relay.archive.archive import Archive
from relay.archive.storage.archive_errors import ArchiveError, ArchiveWriteError
from relay.archive.storage.files import CATALOG_NAME, DECOYS_NAME, FileLayer
from relay.archive.write.failure_episode import FailureEpisode
from relay.archive.write.options import ArchiveOptions, PublishPolicy, SyncPolicy
from relay.archive_inspection.scrub import Scrub
from relay.commands.outcome import exit_code_of
from relay.config import Config, ConfigError, ServerSource, load_config
from relay.config.reload import waiting_for_restart
from relay.config.values import interval_s
from relay.downstream.clients import Clients
from relay.downstream.connection.presentation import Presentation
from relay.downstream.listen_options import ListenOptions
from relay.downstream.server import DownstreamServer
from relay.mirror.mirror_setup import archive_mirror, copies_of
from relay.object_store.object_errors import ObjectStoreError
from relay.packed.packed_errors import KeyUnreadable
from relay.packed.packing_room import RESERVE_BYTES, PackingRoom, reserve_of
from relay.process.background import watch_process
from relay.process.certificates import described
from relay.process.descriptors import Descriptors, share_descriptors
from relay.process.interpreter import GarbageSearch, keep_what_was_made, share_interpreter
from relay.process.notify_socket import NotifySocket
from relay.retention.decision import Place
from relay.retention.retention import Retention
from relay.retention.retention_holds import view_holds
from relay.retention.retention_limits import RetentionLimits
from relay.service.health_socket import HealthSocket
from relay.service.kept_secret import kept_secret
from relay.service.shown_views import ShownViews, source_state
from relay.service.view_service import OpenOne, ViewService
from relay.tiers.tier_setup import note_reading, reading_layer, tier_mover
from relay.upstream.attach.own_address import ListenAddress
from relay.upstream.control import SourceControl
from relay.upstream.source.identity import own_uuid
from relay.upstream.source.source_errors import UpstreamError
from relay.view.running.view_opening import open_view
from relay.view.shown_view import ShownView

if TYPE_CHECKING:
    from relay.http.http_service import HttpService

log = structlog.get_logger()

_SAID_AGAIN_S: Final = 60.0
"""A disk that is full for a binlog is full for the catalog at the same moment: that is logged once."""
_VIEWS_OPENED_S: Final = 5.0
"""The longest time that replicas wait for views to be opened before any of them is listened to."""


def run(config: Config, config_path: Path, source: tuple[str, int] | None = None) -> int:
    """Run the relay until SIGTERM or SIGINT. Return the process's exit code.

    source: host and port of the one to follow, if it is another than before.
    """
    _report_kernel()
    share_interpreter()
    loop_factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    try:
        import uvloop

        loop_factory = uvloop.new_event_loop
    except ImportError:
        log.info("event_loop", loop="asyncio", note="uvloop is not installed; it would be faster")
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(Relay(config, config_path, source).serve())


def _report_kernel() -> None:
    from protocol.kernel import ingest

    if not (ingest.__file__ or "").endswith(".so"):
        log.warning(
            "kernel_uncompiled",
            note="works, but many times slower: install a C compiler and reinstall with BINLOG_RELAY_KERNEL=require",
        )


class Relay:
    """One archive with its upstream and its downstream side. Wiring only."""

    def __init__(
        self,
        config: Config,
        config_path: Path,
        source: tuple[str, int] | None = None,
        open_one: OpenOne = open_view,
    ) -> None:
        self._config = config
        self._open_one = open_one
        self._config_path = config_path
        self._wanted_source = source
        self._stop = asyncio.Event()
        self._archive: Archive | None = None
        self._failures = FailureEpisode()
        self._catalog_failures = FailureEpisode()
        self._failure_said = (-1, 0.0)
        """The errno that was logged last, and the time of that, by the monotonic clock."""
        self._code = ExitCode.FINE
        self._fault: Exception | None = None
        self._control: SourceControl | None = None
        self._retention: Retention | None = None
        self._service = NotifySocket()

    async def serve(self) -> int:
        """Open, listen, follow the source, until stopped. Return the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        take_back = watch_process(loop, self._fault_of_ours)
        self._service = NotifySocket.of_service(os.environ)
        self._service.begin()
        try:
            return await self._serve(loop)
        finally:
            self._service.close()
            take_back()

    async def _serve(self, loop: asyncio.AbstractEventLoop) -> int:
        config = self._config
        # The signal's default is to end the process.
        loop.add_signal_handler(signal.SIGHUP, lambda: log.info("reload_too_early", note="the archive is being opened"))
        try:
            layer = await asyncio.to_thread(reading_layer, config.archive, config.archive_directory)
            archived = replace(archive_options(config), layer=layer, on_failure=self._archive_failed)
            archive = await Archive.open(config.archive_directory, archived)
            await self._note_reading(config)
        except ArchiveError as error:
            log.error("archive_not_opened", **error.fields())
            return exit_code_of(error)
        self._archive = archive
        keep_what_was_made()
        GarbageSearch().begin()
        monitored = config.http.max_connections if config.http.enabled else 0
        descriptors = share_descriptors(config.listen.descriptors, len(config.views), monitored)
        uuid = own_uuid(config.archive_directory)
        control = SourceControl(
            archive,
            config.source,
            uuid,
            self._source_ended,
            listening=ListenAddress(config.listen.host, config.listen.port),
            candidates=config.sources,
            wanted=self._wanted_source,
            failover=config.failover,
        )
        self._control = control
        options = listen_options(config, uuid, descriptors)
        clients = Clients(options)
        scrub = Scrub(archive, interval_s(config.archive.scrub), layer)
        console = Console(archive, control, clients, scrub, config_path=self._config_path.absolute())
        console.copies_of = partial(copies_of, config.archive, config.archive_directory)
        accounts = replica_accounts(config)
        shown = ShownViews(archive, control, clients, options, scrub, console)
        views = ViewService(archive, config.views, replace(archive_options(config), layer=layer), self._open_one, shown)
        room = _packing_room(layer, archive.directory)
        try:
            writer = uuid, secrets.token_hex(8)
            tiers = tier_mover(
                config.archive, archive, lambda: _views_read(archive, console.views.values()), *writer, room
            )
            mirror = archive_mirror(config.archive, archive, *writer, room)
        except (KeyUnreadable, ObjectStoreError) as error:
            log.error("tiers_not_started", what=str(error), advice="Correct [archive] in relay.toml: docs/TIERS.md.")
            await archive.close()
            return exit_code_of(error)
        waits = mirror is not None and config.archive.mirror is not None and config.archive.mirror.keep_until_copied
        retention = Retention(
            archive,
            RetentionLimits.of(config.retention),
            clients,
            lambda: list(console.views.values()),
            uncopied_from=mirror.first_lacking if mirror is not None and waits else lambda: None,
            lent_bytes=lambda: room.borrowed_bytes,
        )
        self._retention = retention
        state = source_state(archive, control)
        server = DownstreamServer(archive, accounts, state, options, clients, console, views.served)
        http: HttpService | None = None
        if config.http.enabled:
            # A relay that is not monitored by HTTP does without the memory of a web server.
            from relay.http.facts.upkeep import Upkeep
            from relay.http.http_service import monitoring

            copied = None if mirror is None else mirror.status
            packs = config.archive.tiers is not None or config.archive.bucket is not None
            read = layer.packed.facts if packs else None
            upkeep = Upkeep(retention.status, None if tiers is None else tiers.status, copied, read)
            http = monitoring(config, archive, control, clients, scrub, console, upkeep, archived.sync_times)
        health = HealthSocket(config.archive_directory)
        try:
            if http is not None and not await self._monitored(http, config):
                return ExitCode.WRONG_USE
            await health.begin()
            views.begin()
            await views.until_opened(_VIEWS_OPENED_S)
            try:
                await server.start(config.listen.host, config.listen.port)
            except OSError as error:
                log.error(
                    "cannot_listen",
                    what=f"{config.listen.host}:{config.listen.port}: {error.strerror or error}",
                    advice="Another process may have the port: choose another listen.port, or stop that process. "
                    "listen.host must be an address of this machine, such as 0.0.0.0 or ::.",
                )
                return ExitCode.WRONG_USE
            loop.add_signal_handler(signal.SIGHUP, self._reload, server, control, retention, http)
            control.begin()
            scrub.begin()
            retention.begin()
            if mirror is not None:
                mirror.begin()
            if tiers is not None:
                tiers.begin()
            self._service.ready(self._status())
            await self._stop.wait()
            if self._fault is not None:
                raise self._fault
            return self._code
        finally:
            self._service.stopping("stopping")
            if http is not None:
                await http.close()
            health.close()
            await scrub.close()
            await retention.close()
            if tiers is not None:
                await tiers.close()
            if mirror is not None:
                await mirror.close()
            layer.packed.close()
            await self._shut_down(server, views, control, console, archive)

    async def _note_reading(self, config: Config) -> None:
        try:
            await asyncio.to_thread(note_reading, config.archive, config.archive_directory)
        except OSError as error:
            advice = (
                "The relay reads packed binlogs all the same. Commands beside it do not find them until its next start."
            )
            log.warning("tiers_not_noted", what=f"{error.filename}: {error.strerror}", advice=advice)

    async def _monitored(self, http: "HttpService", config: Config) -> bool:
        """Start the HTTP port; return whether it listens."""
        try:
            await http.start(config.http_tls)
        except OSError as error:
            log.error(
                "cannot_listen",
                what=f"{config.http.host}:{config.http.port}: {error.strerror or error}",
                advice="Another process may have the port: choose another http.port, or stop that process. "
                "http.host must be an address of this machine, such as 127.0.0.1.",
            )
            return False
        return True

    def _source_ended(self, error: Exception) -> None:
        """Handle the end of following the source: serving continues, unless there is nothing to serve or the fault is internal."""
        if not isinstance(error, UpstreamError):
            log.error("source_side_failed", what=f"{type(error).__name__}: {error}")
            self._fault_of_ours(error)
        elif self._archive is None or (self._archive.current.end is None and not self._is_attended()):
            # The caller who started the relay must be informed. One who works on it by statements sees it in SHOW SLAVE STATUS.
            self._code = exit_code_of(error)
            self._stop.set()
        else:
            log.error(
                "serving_what_is_archived",
                what=error.what,
                note="the relay no longer follows its source; replicas go on with what the archive holds",
                advice="Correct the cause, then START REPLICA at the relay, or restart it."
                + (" Failover acts on a source that cannot be reached only." if len(self._config.sources) > 1 else ""),
            )

    def _is_attended(self) -> bool:
        return self._control is not None and self._control.is_attended

    def _fault_of_ours(self, fault: Exception) -> None:
        """Stop the relay after an internal fault, which is logged with its traceback by now: a part that cannot work without it would
        only seem to."""
        self._fault = fault
        self._stop.set()

    async def _shut_down(
        self,
        server: DownstreamServer,
        views: ViewService,
        control: SourceControl,
        console: Console,
        archive: Archive,
    ) -> None:
        await server.close()
        console.close()
        await views.close()
        await control.close()
        try:
            await archive.close()
        except ArchiveError as error:
            log.error("archive_not_closed_cleanly", **error.fields())
        log.info("stopped")

    def _archive_failed(self, error: ArchiveWriteError) -> None:
        """Log a full disk once, not again with each attempt to continue: those are in `source_lost`."""
        if self._retention is not None:
            self._retention.hurry()
        generation = self._archive.current if self._archive is not None else None
        archived = generation.purged_bytes + sum(file.end for file in generation.files) if generation is not None else 0
        # The catalog may find no room while binlogs do, and the other way round: neither hides the other for long.
        failures = self._catalog_failures if error.file == CATALOG_NAME else self._failures
        now = time.monotonic()
        errno_said, said_s = self._failure_said
        if failures.is_news(error.errno, archived, now) and (
            error.errno != errno_said or now - said_s >= _SAID_AGAIN_S
        ):
            self._failure_said = error.errno, now
            log.error("archive_write_failed", **error.fields())

    def _reload(
        self, server: DownstreamServer, control: SourceControl, retention: Retention, http: "HttpService | None"
    ) -> None:
        """Reload after SIGHUP: logins, certificates, retention and the account at the source are read from their files again, no
        more."""
        self._service.reloading()
        self._take_over(server, control, retention, http)
        self._service.ready(self._status())

    def _status(self) -> str:
        """Return one line for the service manager."""
        listen, source = self._config.listen, self._config.source
        origin = f"{source.host}:{source.port}" if isinstance(source, ServerSource) else str(source.path)
        return f"relays {origin}, listens on {listen.host}:{listen.port}"

    def _take_over(
        self, server: DownstreamServer, control: SourceControl, retention: Retention, http: "HttpService | None"
    ) -> None:
        try:
            config = load_config(self._config_path)
            accounts = replica_accounts(config)
        except (ConfigError, OSError) as error:
            problems = [str(problem) for problem in error.problems] if isinstance(error, ConfigError) else [str(error)]
            note = "nothing was changed: accounts, certificate and the account at the source stay as they were"
            log.error("reload_refused", problems=problems, note=note)
            return
        server.replace_accounts(accounts)
        server.replace_tls(config.server_tls)
        if http is not None:
            http.reload(config)
        server.replace_login_limits(config.listen.max_login_failures, config.listen.login_block_s)
        retention.take(RetentionLimits.of(config.retention))
        changed, kept = control.take_accounts(config.sources)
        waiting = waiting_for_restart(self._config, config)
        log.info(
            "reloaded",
            accounts=len(config.accounts),
            **described(config.server_tls),
            source_account_changed=list(changed),
            source_account_kept=kept,
            waits_for_restart=waiting,
            note="other changes take effect at the next start" if waiting else None,
        )


def _packing_room(layer: FileLayer, directory: Path) -> PackingRoom:
    try:
        reserve_bytes = reserve_of(layer.whole_bytes(directory))
    except OSError:  # the packing code gets the error
        reserve_bytes = RESERVE_BYTES
    return PackingRoom(partial(layer.free_bytes, directory), reserve_bytes)


def _views_read(archive: Archive, views: Iterable[ShownView]) -> Place | None:
    """Return the place from which on views are being built: files that are read as a whole soon are not packed before."""
    return min((hold.place for hold in view_holds(archive, views, also_stopped=False)), default=None)


def archive_options(config: Config) -> ArchiveOptions:
    """Return the options with which archives are written: the mirror, and each view."""
    return ArchiveOptions(
        sync=SyncPolicy(config.archive.sync),
        publish=PublishPolicy(config.archive.publish),
        sync_interval_s=config.archive.sync_interval_s,
    )


def listen_options(config: Config, server_uuid: str, descriptors: Descriptors) -> ListenOptions:
    """Return the options of the replica listener."""
    listen = config.listen
    return ListenOptions(
        position_wait_s=listen.position_wait_s,
        resumes_all=listen.inside_transactions == "all",
        max_connections=descriptors.connections,
        admin_connections=descriptors.admins,
        max_unauthenticated=descriptors.strangers,
        backlog=descriptors.backlog,
        handshake_timeout_s=listen.handshake_timeout_s,
        presentation=presentation(config, server_uuid),
        tls=config.server_tls,
        max_login_failures=listen.max_login_failures,
        login_block_s=listen.login_block_s,
        memory_bytes=config.memory.budget_bytes,
        decoy_secret=kept_secret(config.archive_directory / DECOYS_NAME, SECRET_BYTES),
    )


def presentation(config: Config, server_uuid: str) -> Presentation:
    """Return the identity that the relay shows to replicas."""
    source = config.source
    return Presentation(
        present_as=config.listen.present_as,
        version=config.listen.version,
        server_id=source.server_id if isinstance(source, ServerSource) else None,
        server_uuid=server_uuid,
        semi_sync=config.listen.demand_acks,
    )


def replica_accounts(config: Config) -> list[ReplicaAccount]:
    """Return the configured logins as the protocol checks them."""
    return [
        ReplicaAccount(
            user=account.user,
            credentials=account.credentials(),
            markers=account.markers,
            host=HostPattern.parse(account.host),
            admin=account.admin,
            require_tls=account.require_tls,
            require_client_cert=account.require_client_cert,
            plugin=account.plugin,
            view=account.view,
            max_connections=account.max_connections,
        )
        for account in config.accounts
    ]
