"""The control of the source: it is stopped, started and changed while the relay keeps serving what it has."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import structlog
from pydantic import SecretStr, ValidationError

from protocol.errors import ErrorCode, StatementRefused
from protocol.position import Position
from relay.archive.archive import Archive
from relay.archive.gaps.accepted_gap import AcceptedGap
from relay.archive.gaps.gap_decision import GapDecision
from relay.archive.generation import Generation
from relay.archive.storage.archive_errors import ArchiveError
from relay.archive.storage.replica_marks import SentPlace
from relay.config import DirectorySource, FailoverSection, ServerSource
from relay.process.background import begin_task, run_to_end
from relay.upstream.attach.attachment import Attacher
from relay.upstream.attach.gap_plan import GapRefused, GapRequest
from relay.upstream.attach.own_address import NOWHERE, ListenAddress
from relay.upstream.chosen_source import address, first_source, kept_chosen, with_address
from relay.upstream.directory_source import DirectoryUpstream
from relay.upstream.failover import Failover
from relay.upstream.server_source import IdentityChange, ServerUpstream
from relay.upstream.source.gtid_question import SourceQuestions
from relay.upstream.source.identity import own_registration
from relay.upstream.source.source_errors import FailureKind, UpstreamError
from relay.upstream.source.source_gtids import SourceGtids, kept_source_gtids
from relay.upstream.source.source_settings import kept_source_settings
from relay.upstream.source.source_status import Phase, SourceLink, SourceStatus, read_status
from relay.upstream.source.stream_tally import StreamTally
from relay.upstream.source_account import take_accounts

log = structlog.get_logger()

_CANCEL_AGAIN_S: Final = 0.2
# The first file after a gap is awaited for so long: the operator who accepted it sees that it has begun.
_GAP_BEGINS_S: Final = 10.0
_NO_STOP: Final = "a stream that was stopped"


class Upstream(Protocol):
    """A way to follow the source; `run` ends only by an error that a retry cannot cure, or by cancellation."""

    async def run(self) -> UpstreamError: ...


@dataclass(frozen=True, slots=True)
class SourceChange:
    """The settings that CHANGE MASTER TO asked for; None leaves a setting unchanged. The password is left out of the repr."""

    host: str | None = None
    port: int | None = None
    user: str | None = None
    password: str | None = None
    file: str | None = None
    position: int | None = None
    ssl: bool | None = None
    ssl_ca: str | None = None
    ssl_cert: str | None = None
    ssl_key: str | None = None
    public_key: str | None = None
    ssl_verify_server_cert: bool | None = None
    heartbeat_period_s: float | None = None

    def __repr__(self) -> str:
        return f"SourceChange(host={self.host!r}, port={self.port!r}, user={self.user!r})"


class SourceControl:
    """The one owner of the upstream side: runs it, stops it, starts it with other settings. For the event loop's thread.

    `on_ended` is called with the UpstreamError that ended it and that no retry cures (until `start` the relay serves what it has), or
    with any other exception, which is a fault of ours. `listening` is where replicas reach this relay.
    """

    def __init__(
        self,
        archive: Archive,
        settings: ServerSource | DirectorySource,
        server_uuid: str,
        on_ended: Callable[[Exception], None],
        *,
        listening: ListenAddress = NOWHERE,
        candidates: Sequence[ServerSource] = (),
        wanted: tuple[str, int] | None = None,
        failover: FailoverSection | None = None,
    ) -> None:
        self._archive = archive
        self._settings = settings
        self._candidates: tuple[ServerSource, ...] = ()
        self._server_uuid = server_uuid
        self._on_ended = on_ended
        self._link = SourceLink()
        generation = archive.current
        self._questions = SourceQuestions(lambda: self._settings, self._link)
        self._link.gtids = kept = kept_source_gtids(generation.directory)
        if kept is not None:
            generation.gtids.source_purged = kept.purged
        self._link.settings = kept_source_settings(generation.directory)
        self._following: asyncio.Task[None] | None = None
        self._attempts: Upstream | None = None
        self._order = asyncio.Lock()
        self._stopped_by_operator = False
        self._started_by_operator = False
        self._changed_by_operator = False
        self._listening = listening
        self._identity_change = IdentityChange()
        self._decision = GapDecision(archive.directory)
        self._decision.load(generation.gap)
        if isinstance(settings, ServerSource):
            self._candidates = tuple(candidates) or (settings,)
            first = first_source(self._candidates, kept_chosen(generation.directory), wanted)
            self._settings = first.settings
            self._identity_change.accepted = first.named
        policy = failover or FailoverSection()
        self._failover = Failover(
            self._candidates, policy.mode, policy.after_s, self._link, self._examine, self._take_over
        )
        self._looking: asyncio.Task[None] | None = None

    @property
    def followed(self) -> ServerSource | DirectorySource:
        """The source that is followed now, or would be."""
        return self._settings

    @property
    def _generation(self) -> Generation:
        return self._archive.current

    @property
    def running(self) -> bool:
        """True if the source is followed or retried."""
        return self._following is not None and not self._following.done()

    @property
    def received_heartbeats(self) -> int:
        """The number of heartbeats that were received since the relay's start."""
        return self._link.received_heartbeats

    @property
    def tally(self) -> StreamTally:
        """The totals of what was received from sources."""
        return self._link.tally

    @property
    def gtids(self) -> SourceGtids | None:
        """The GTIDs that the source last reported; None if it reported nothing yet."""
        return self._link.gtids

    @property
    def is_reading_on(self) -> bool:
        """True while a directory is read and its end was not reached since the relay's start."""
        is_reading = self._link.phase in (Phase.CONNECTING, Phase.STREAMING)
        return isinstance(self._settings, DirectorySource) and is_reading and not self._link.is_read_through

    @property
    def settings(self) -> Mapping[str, str]:
        """The settings that the source last reported, by name; empty if it reported nothing yet."""
        return self._link.settings

    async def ask_gtids(self) -> SourceGtids | None:
        """Return the GTIDs that the source reports when asked now; None if it cannot be asked."""
        return await self._questions.gtids()

    async def lacks_file(self, name: str) -> bool:
        """Return whether the source, asked now, has no binlog of that name and none after it; False also if it cannot be asked."""
        return await self._questions.lacks_file(name)

    def status(self) -> SourceStatus:
        """Return the current state of the upstream side."""
        return read_status(
            self._settings,
            self._link,
            self._generation,
            stopped_by_operator=self._stopped_by_operator,
            started_by_operator=self._started_by_operator,
            changed_by_operator=self._changed_by_operator,
        )

    def begin(self) -> None:
        """Begin at the relay's own start."""
        self._run()
        if len(self._candidates) > 1:
            looking = self._failover.run(self._followed)
            self._looking = begin_task(looking, "looking for another source", self._on_ended)

    async def start(self) -> bool:
        """START REPLICA: continue from the archive's end, whatever ended the stream before. Return False if it runs already; if it
        waits for its next attempt, that is made now."""
        async with self._order:
            self._started_by_operator = True
            if self.running:
                if self._link.hurry():
                    log.info("source_tried_at_once", by="operator")
                return False
            self._stopped_by_operator = False
            self._link.forget_error()
            self._run()
            log.info("source_started", by="operator")
            return True

    async def stop(self) -> bool:
        """STOP REPLICA: end the stream; what is archived is still served. Return False if it does not run."""
        # The client may disconnect meanwhile. It is finished in any case, before anything else begins.
        return await run_to_end(self._stop(), "STOP REPLICA")

    async def _stop(self) -> bool:
        async with self._order:
            if not self.running:
                return False
            self._stopped_by_operator = True
            await self._end()
            log.info("source_stopped", by="operator", archive_end=str(self._generation.end or "nothing"))
            return True

    async def change(self, change: SourceChange) -> None:
        """CHANGE MASTER TO: use another source, or another address, account or TLS for the same one. It takes effect at `start`.

        An address that relay.toml names has the account and TLS from there, unless the change says otherwise. The change is kept beyond
        the relay's end once the relay has attached to it; a password is not. Raises: StatementRefused while it runs, for a position
        that is not the archive's end, for impossible values, and for a directory.
        """
        async with self._order:
            if self.running:
                text = "This operation cannot be performed with a running replica io thread; run STOP REPLICA first"
                raise StatementRefused(ErrorCode.ER_SLAVE_MUST_STOP, text)
            settings = self._settings
            if not isinstance(settings, ServerSource):
                text = f"this relay follows the directory {settings.path}; source.path in relay.toml names another one"
                raise StatementRefused(ErrorCode.ER_WRONG_ARGUMENTS, text)
            self._check_position(change)
            self._settings = _changed(self._configured(settings, change), change)
            self._changed_by_operator = True
            self._link.given_up = None  # That concerned the settings before
            # As for a server, a statement that names host or port concerns a source that may be another one.
            self._identity_change.accepted |= change.host is not None or change.port is not None
            log.warning(
                "source_changed",
                host=self._settings.host,
                port=self._settings.port,
                user=self._settings.user,
                note="kept once it was attached to, but for a password; change relay.toml too",
            )

    async def accept_gap(
        self, to: Position | None, by: str, connected: Sequence[SentPlace] = ()
    ) -> tuple[AcceptedGap, bool]:
        """Go on after what the source no longer has, in a new generation of the archive. `to` is the place (None: as early as
        possible), `by` is who decided, and `connected` are replicas and up to where they were sent the newest generation.

        Returns what is missing, and whether the generation has begun; until then the decision is kept, across restarts. Raises:
        StatementRefused if there is nothing to accept, or not in this way.
        """
        gap = await run_to_end(self._accept_gap(to, by, connected), "accepting a gap", expected=(StatementRefused,))
        return gap, await self._begins_behind(gap)

    async def _accept_gap(self, to: Position | None, by: str, connected: Sequence[SentPlace]) -> AcceptedGap:
        async with self._order:
            settings, given_up = self._settings, self._link.given_up
            if not isinstance(settings, ServerSource):
                text = f"this relay follows the directory {settings.path}: put the missing files there"
                raise StatementRefused(ErrorCode.ER_WRONG_ARGUMENTS, text)
            if self.running:
                error = self._link.last_error
                text = "There is no gap: the relay follows its source"
                if error is not None:
                    text = f"The source is tried again and again ({error.what}): STOP REPLICA first, if it is meant all the same"
                raise StatementRefused(ErrorCode.ER_UNKNOWN_ERROR, text)
            attacher = self._attacher(settings)
            plan = attacher.gap_plan(accept_another=self._identity_change.accepted)
            stop = given_up.name if given_up is not None else _NO_STOP
            try:
                gap = await plan.find(GapRequest(by, time.time(), stop, to, connected))
                await self._decision.keep(gap)
            except GapRefused as refused:
                raise StatementRefused(ErrorCode.ER_UNKNOWN_ERROR, str(refused)) from refused
            except UpstreamError as error:
                raise StatementRefused(
                    ErrorCode.ER_UNKNOWN_ERROR, f"The source cannot be looked at: {error.what}. {error.advice}"
                ) from error
            except (ArchiveError, OSError) as error:
                raise StatementRefused(ErrorCode.ER_UNKNOWN_ERROR, f"The archive cannot be used: {error}") from error
            log.warning("gap_decided", what=gap.text)
            self._stopped_by_operator = False
            self._started_by_operator = True
            self._link.forget_error()
            self._run()
            return gap

    async def _begins_behind(self, gap: AcceptedGap) -> bool:
        """Wait briefly for the generation after the gap, while the source is followed."""
        moved = asyncio.Event()
        self._archive.watch(moved.set)
        try:
            async with asyncio.timeout(_GAP_BEGINS_S):
                while self._archive.current.gap != gap and self.running:
                    moved.clear()
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(moved.wait(), _CANCEL_AGAIN_S)
        except TimeoutError:
            return False
        finally:
            self._archive.unwatch(moved.set)
        return self._archive.current.gap == gap

    def take_accounts(self, configured: Sequence[ServerSource]) -> tuple[tuple[str, ...], str | None]:
        """SIGHUP: take users and passwords of the sources as they are in relay.toml now, for connections from now on.

        A running stream continues. An attempt that waits because the source refused the account is made now. Returns the addresses
        (host:port) whose account has changed, and why the followed source keeps its own (None: it does not).
        """
        settings = self._settings
        if not isinstance(settings, ServerSource) or not configured:
            return (), None
        taken = take_accounts(self._candidates, settings, configured)
        self._settings, self._candidates = taken.followed, taken.candidates
        self._failover.sources = taken.candidates
        if isinstance(self._attempts, ServerUpstream):
            self._attempts.use_account(taken.followed)
        error = self._link.last_error
        if error is not None and error.kind is FailureKind.AUTHENTICATION and self._link.hurry():
            log.info("source_tried_at_once", by="SIGHUP")
        return taken.changed, taken.kept

    @property
    def trouble(self) -> str | None:
        """Return why the source is not followed, by name; None if nothing is known to be wrong."""
        error = self._link.last_error
        if error is not None:
            return f"{error.name}: {error.what}"
        return "STOP REPLICA was given" if self._stopped_by_operator and not self.running else None

    @property
    def trouble_name(self) -> str:
        """Return the name of the trouble, as in docs/ERRORS.md; empty if there is none, or an operator stopped it."""
        error = self._link.last_error
        return error.name if error is not None else ""

    @property
    def is_attended(self) -> bool:
        """True if an operator has stopped, started or changed it by a statement, and may do so again."""
        return self._stopped_by_operator or self._started_by_operator or self._changed_by_operator

    async def close(self) -> None:
        """Close it at the relay's end."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait({self._looking})
        async with self._order:
            await self._end()

    # --- failover ----------------------------------------------------------------------------------------------------

    def _followed(self) -> ServerSource:
        assert isinstance(self._settings, ServerSource)
        return self._settings

    async def _examine(self, source: ServerSource) -> str:
        """Return with what the archive could go on there now. Raises: UpstreamError; ArchiveError."""
        return await self._attacher(source).examine(self._generation.end)

    def _attacher(self, source: ServerSource) -> Attacher:
        """Return an attacher for a look at a source, without the notes that the stream keeps."""
        own = own_registration(source.server_id, self._listening.port)
        return Attacher(self._archive, source, own, self._server_uuid, SourceLink(), listen_host=self._listening.host)

    async def _take_over(self, source: ServerSource, why: str) -> None:
        async with self._order:
            if not self.running or self._link.unreachable_since is None:
                return
            await self._end()
            log.warning("source_failover", source=address(source), why=why)
            end = self._generation.end
            file, offset = (end.file, end.offset) if end is not None else ("", -1)
            self._generation.append_ledger("source_failover", file, offset, f"{why}; {address(source)} is tried.")
            self._settings = source
            self._identity_change.accepted = True
            self._link.forget_error()
            self._run()

    # --- the task ----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        self._attempts = self._upstream()
        self._following = begin_task(self._follow(self._attempts), "following the source", self._on_ended)

    def _upstream(self) -> Upstream:
        # It is created again for each start: buffers of the previous one may still be with a thread.
        settings = self._settings
        if isinstance(settings, ServerSource):
            return ServerUpstream(
                self._archive,
                settings,
                self._server_uuid,
                self._link,
                listening=self._listening,
                change=self._identity_change,
                candidates=self._candidates,
                decision=self._decision,
            )
        return DirectoryUpstream(self._generation, settings, self._link)

    async def _follow(self, upstream: Upstream) -> None:
        try:
            ended = await upstream.run()
        finally:
            self._link.stopped()
        self._on_ended(ended)

    async def _end(self) -> None:
        # It stays the followed one until it has ended: a caller that waits for that may be cancelled, and another one must wait for it
        # then.
        while (following := self._following) is not None and not following.done():
            # Once is not enough: asyncio.wait_for of Python 3.11 swallows a cancellation that meets a result.
            following.cancel()
            await asyncio.wait({following}, timeout=_CANCEL_AGAIN_S)
        self._following = None

    def _configured(self, settings: ServerSource, change: SourceChange) -> ServerSource:
        """Return relay.toml's source at another address that the change names; the settings in force if there is none."""
        host = settings.host if change.host is None else change.host
        port = settings.port if change.port is None else change.port
        if (host, port) == (settings.host, settings.port):
            return settings
        there = with_address(self._candidates, host, port)
        return there if there in self._candidates else settings

    def _check_position(self, change: SourceChange) -> None:
        """Check the position: the relay's binlogs are the source's, so that a stream can only go on where they end."""
        end = self._generation.end
        if change.file is None and change.position is None:
            return
        if end is None:
            text = "the archive is empty: source.start in relay.toml says where the first binlog begins"
            raise StatementRefused(ErrorCode.ER_WRONG_ARGUMENTS, text)
        file = end.file if change.file is None else change.file
        offset = end.offset if change.position is None else change.position
        if (file, offset) != (end.file, end.offset):
            raise StatementRefused(
                ErrorCode.ER_WRONG_ARGUMENTS,
                f"{file}, position {offset} is not where the archive ends: {end.file}, position {end.offset}. "
                "Leave the position out, or name that one: with GTIDs the relay finds the place in another source's binlogs "
                "itself. Where the source has lost what comes next: CALL binlog_relay.accept_gap()",
            )


def _changed(settings: ServerSource, change: SourceChange) -> ServerSource:
    """Return the settings with the change applied. Raises: StatementRefused for impossible values."""
    values: dict[str, object] = {}
    for key in ("host", "port", "user", "heartbeat_period_s"):
        value = getattr(change, key)
        if value is not None:
            values[key] = value
    if change.password is not None:
        values |= {
            "password": SecretStr(change.password),
            "password_file": None,
            "password_env": None,
            "password_credential": None,
        }
    for key in ("ssl_ca", "ssl_cert", "ssl_key", "public_key"):
        path = getattr(change, key)
        if path is not None:
            values[key] = path or None
    ca = change.ssl_ca if change.ssl_ca is not None else settings.ssl_ca
    mode = _mode(settings.ssl_mode, bool(ca), change)
    if mode is not None:
        values["ssl_mode"] = mode
    try:
        return ServerSource.model_validate({**dict(settings), **values})
    except ValidationError as error:
        # It is not chained: its text could show the password.
        wrong = "; ".join(
            f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors(include_url=False)
        )
        raise StatementRefused(ErrorCode.ER_WRONG_ARGUMENTS, f"the change is refused: {wrong}") from None


def _mode(mode: str, ca: bool, change: SourceChange) -> str | None:
    """Return the ssl_mode for the yes and no of the statement's SSL options; None leaves it unchanged. `ca` says that an authority is
    named."""
    if change.ssl is False:
        return "disabled"
    verify = change.ssl_verify_server_cert
    # Other TLS options do not switch it on.
    off = mode in ("disabled", "preferred") and not change.ssl and not verify
    if off or (change.ssl is None and change.ssl_ca is None and verify is None):
        return None
    if verify or (verify is None and mode == "verify_identity"):
        return "verify_identity"
    # Without the name check, a source with an authority is still one whose certificate must be signed.
    return "verify_ca" if (ca or mode == "verify_ca") else "required"
