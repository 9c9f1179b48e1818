"""The connection to a running source: attach, stream, and attach again, for as long as it takes."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import structlog

from protocol.kernel.ingest import Ingest
from protocol.position import Position
from relay.archive.archive import Archive
from relay.archive.gaps.accepted_gap import AcceptedGap
from relay.archive.gaps.gap_decision import GapDecision
from relay.archive.generation import Generation, GenerationState
from relay.archive.storage.archived_file import ArchivedFile
from relay.config import ServerSource
from relay.process.background import begin_task
from relay.upstream.attach.attachment import Attached, Attacher
from relay.upstream.attach.gap_plan import GapRefused
from relay.upstream.attach.own_address import NOWHERE, ListenAddress
from relay.upstream.chosen_source import chosen, keep_chosen, kept_chosen
from relay.upstream.retry_loop import keep_trying
from relay.upstream.schema.scanned_files import ScannedFiles
from relay.upstream.schema.schema_watch import SchemaRecording, SchemaWatch
from relay.upstream.source.identity import own_registration
from relay.upstream.source.log_replica_updates import note_never_logged, warn_of_a_replica
from relay.upstream.source.source_errors import ACCEPT_GAP, FailureKind, UpstreamError
from relay.upstream.source.source_gtids import SourceGtids, keep_source_gtids, kept_part
from relay.upstream.source.source_settings import keep_source_settings, read_source_settings
from relay.upstream.source.source_status import SourceLink
from relay.upstream.source.source_watch import SourceWatch
from relay.upstream.stream.acknowledger import Acknowledger
from relay.upstream.stream.intake import Intake
from relay.upstream.stream.receive_buffers import ReceiveBufferPool
from relay.upstream.stream.source_stream import DumpStream

log = structlog.get_logger()

# Without a byte for so many heartbeat periods the link is dead.
_SILENT_PERIODS: Final = 3
# The time that is waited at the end for notes about the source's tables; what is not written is found again.
_SCHEMA_WRITTEN_S: Final = 1.0


@dataclass(slots=True)
class IdentityChange:
    """A record that an operator named another source; it is valid until a stream of it has begun."""

    accepted: bool = False


class ServerUpstream:
    """The upstream side for `source.kind = "server"`. `run()` ends only by an error that a retry cannot cure.

    `candidates` are the sources of relay.toml, in their order. `decision` is the accepted gap, if one must be passed.
    """

    def __init__(
        self,
        archive: Archive,
        settings: ServerSource,
        server_uuid: str,
        link: SourceLink,
        *,
        listening: ListenAddress = NOWHERE,
        change: IdentityChange | None = None,
        candidates: Sequence[ServerSource] = (),
        decision: GapDecision | None = None,
    ) -> None:
        self._archive = archive
        self._decision = decision or GapDecision(archive.directory)
        self._own = own_registration(settings.server_id, listening.port)
        self._change = change or IdentityChange()
        self._settings = settings
        self._candidates = candidates or (settings,)
        self._link = link
        self._attacher = Attacher(archive, settings, self._own, server_uuid, link, listen_host=listening.host)
        self._pool = ReceiveBufferPool()
        self._recording = SchemaRecording(self._attacher.open, settings.user)
        self._schema: SchemaWatch | None = None
        self._asking: asyncio.Task[None] | None = None
        """True if the source is a replica itself; it is asked once."""

    def use_account(self, settings: ServerSource) -> None:
        """Use another account or password at the same source for connections from now on."""
        self._settings = self._attacher.settings = settings
        self._recording.user = settings.user

    async def run(self) -> UpstreamError:
        """Follow the source. Return the error that ended it for good; cancelling it stops it."""
        try:
            return await keep_trying(lambda: self._archive.current, self._follow, self._link)
        finally:
            if self._asking is not None:
                self._asking.cancel()
            await self._schema_written()

    async def _follow(self) -> None:
        place = await self._place_to_resume()
        self._pool.put_back()  # The writer has given back all of the previous stream
        attached = await self._attach(place)
        try:
            generation = await self._ready_generation(attached)
            error = await self._stream(attached, generation)
        finally:
            try:
                if attached.begins:
                    await self._schema_written()
            finally:
                # This also applies if a second cancellation ended the wait. If it got no file, the archive is as it was before.
                await asyncio.shield(self._archive.discard_prepared())
            if attached.begins and self._archive.current.identity == attached.identity:
                self._change.accepted = False
            if attached.gap is not None and self._archive.current.gap == attached.gap:
                await self._decision.drop()
        if error.name == "server_id_clash":
            error = await self._attacher.with_the_others_name(error)
        if not attached.binlogs_listed and error.kind is FailureKind.POSITION_GONE:
            error = await self._attacher.explained(error, place)
        raise error

    async def _attach(self, place: Position | None) -> Attached:
        accept_another, gap = self._change.accepted, self._decision.gap
        if gap is not None:
            try:
                return await self._attacher.attach(place, accept_another=accept_another, gap=gap)
            except GapRefused as refused:
                text = f"What {gap.by} accepted is not carried out. {refused}"
                log.warning("gap_not_carried_out", what=text)
                self._archive.current.append_ledger("gap_not_carried_out", gap.to.file, gap.to.offset, text)
                await self._decision.drop()
        return await self._attacher.attach(place, accept_another=accept_another)

    async def _ready_generation(self, attached: Attached) -> Generation:
        """Return the generation that the stream belongs to, with the files that are kept beside it."""
        generation = self._archive.current
        try:
            if attached.begins:
                generation = await self._archive.prepare(
                    attached.identity, self._attacher.where, attached.file, attached.gap
                )
            else:
                where, executed = self._attacher.where, self._archive.executed
                note_never_logged(generation, executed, attached.gtids, where, attached.leaves_out)
            self._ask_whether_a_replica(attached.leaves_out)
            settings = await read_source_settings(attached.connection, {})
            await self._take_variables(generation, attached.gtids, settings)
            await self._keep_choice(generation)
        except BaseException:
            attached.connection.close()
            raise
        return generation

    def _ask_whether_a_replica(self, leaves_out: str | None) -> None:
        if leaves_out is not None and self._asking is None:
            asking = warn_of_a_replica(self._attacher.open, self._attacher.where, leaves_out)
            self._asking = begin_task(asking, "asking whether the source is a replica")

    async def _take_variables(self, generation: Generation, gtids: SourceGtids, settings: dict[str, str]) -> None:
        """Take the variables of a source with which the archive can go on: they are shown to replicas and readers from now on, and
        saved."""
        link = self._link
        before, known = link.gtids, link.settings
        link.gtids, link.settings = gtids, settings
        generation.gtids.source_purged = gtids.purged
        if before is None or before.mode != gtids.mode:
            log.info("source_gtid_mode", gtid_mode=gtids.mode)
        is_news = kept_part(gtids) != kept_part(before) or settings != known
        if is_news or generation is not self._archive.current or not link.is_kept:
            await self._keep_variables()

    async def _variables_changed(self) -> None:
        """Take the changed variables of the source."""
        if self._link.gtids is not None:
            self._archive.receiving.gtids.source_purged = self._link.gtids.purged
        await self._keep_variables()

    async def _keep_variables(self) -> None:
        directory = self._archive.receiving.directory
        gtids, settings = self._link.gtids or SourceGtids(), self._link.settings
        try:
            await asyncio.to_thread(keep_source_gtids, directory, gtids)
            await asyncio.to_thread(keep_source_settings, directory, settings)
            self._link.is_kept = True
        except OSError as error:
            self._link.is_kept = False
            log.warning("source_variables_not_kept", why=error.strerror, note="tried again at the next attachment")

    async def _keep_choice(self, generation: Generation) -> None:
        """Save the source's address beside its generation: from then on it counts, and a restart continues with it."""
        directory, choice = generation.directory, chosen(self._settings, self._candidates)
        try:
            if await asyncio.to_thread(kept_chosen, directory) != choice:
                await asyncio.to_thread(keep_chosen, directory, choice)
        except OSError as error:
            log.warning("chosen_source_not_kept", why=error.strerror, note="relay.toml decides at the next start")

    def _same_binlogs(self, another: bool) -> None:
        """Continue the stream in the archive's file: the source is the archive's, or the one that becomes it now."""
        generation = self._archive.current
        known = generation.identity
        found = self._link.identity
        if found is not None and known != found:
            generation.set_identity(found)
            if another and known is not None:
                end = generation.end
                file, offset = (end.file, end.offset) if end is not None else ("", -1)
                text = (
                    f"now {self._attacher.where}, server_uuid {found.server_uuid}, server_id {found.server_id}; before "
                )
                text += f"server_uuid {known.server_uuid}, server_id {known.server_id}"
                generation.append_ledger("source_changed", file, offset, text)
        self._change.accepted = False

    async def _stream(self, attached: Attached, generation: Generation) -> UpstreamError:
        """Take over the connection for the stream, and return the error that ended it."""
        settings = self._settings
        connection, place, semi_sync = attached.connection, attached.place, attached.semi_sync
        facts = connection.facts
        intake = Intake(
            generation,
            place,
            packets=True,
            prefix=3 if semi_sync else 1,
            on_violation=settings.on_violation,
            announced_checksum=facts.checksum,
            tally=self._link.tally,
        )
        held = generation.file(place.file) if place is not None else None
        if attached.gap is not None:
            intake.check_format = partial(check_file_behind, attached.gap)
        elif attached.begins:
            pass  # Its identity was recorded with its beginning
        elif held is None:
            self._same_binlogs(attached.another)
        else:

            def check(ingest: Ingest) -> None:
                check_same_file(held, ingest)
                self._same_binlogs(attached.another)

            intake.check_format = check
        intake.on_format = self._link.answered
        streams: list[DumpStream] = []

        def take_over(transport: asyncio.Transport, early: bytes) -> DumpStream:
            stream = DumpStream(intake, self._pool, transport, early)
            streams.append(stream)
            return stream

        offset = place.offset if place is not None else 4
        connection.start_dump(attached.file, offset, settings.server_id, take_over)
        stream = streams[0]
        watch = SourceWatch(self._attacher.open, self._link, self._variables_changed)
        intake.on_file = watch.file_begins
        acknowledger: Acknowledger | None = None
        if semi_sync:
            acknowledger = Acknowledger(generation, stream.send, self._link, stream.fail)
            intake.on_ack_wanted = acknowledger.want
        if settings.record_schema:
            self._schema = self._watch_schema(generation, place)
            intake.definitions = self._schema.notes
        self._link.attached()
        self._link.count_heartbeats(lambda: intake.ingest.heartbeats)
        self._link.semi_sync = semi_sync
        self._link.tls_version, self._link.cipher = connection.security or (None, None)
        log.info(
            "source_attached",
            source=self._attacher.where,
            flavour=facts.flavour,
            version=facts.version,
            server_id=facts.server_id,
            file=attached.file or "oldest",
            offset=offset,
            generation=generation.number,
            semi_sync=semi_sync,
            tls=" ".join(connection.security) if connection.security is not None else "none",
        )
        # An idle source sends nothing that the archive could refuse: without this the next attempt would be late.
        generation.watch_failure(stream.archive_failed)
        try:
            return await self._watch(stream)
        finally:
            generation.unwatch_failure(stream.archive_failed)
            watch.close()
            if acknowledger is not None:
                acknowledger.close()
            if self._schema is not None:
                self._schema.close()
            stream.close()

    def _watch_schema(self, generation: Generation, place: Position | None) -> SchemaWatch:
        held = ScannedFiles(generation.directory, generation.files)

        def oldest() -> str | None:
            files = generation.files
            return files[0].name if files else None

        return SchemaWatch(self._recording, generation.directory, held, place, oldest)

    async def _schema_written(self) -> None:
        if self._schema is not None:
            await asyncio.to_thread(self._schema.join, _SCHEMA_WRITTEN_S)

    async def _watch(self, stream: DumpStream) -> UpstreamError:
        limit_s = _SILENT_PERIODS * self._settings.heartbeat_period_s
        loop = asyncio.get_running_loop()
        while True:
            done, _ = await asyncio.wait({stream.ended}, timeout=self._settings.heartbeat_period_s)
            if done:
                return stream.ended.result()
            silent_s = loop.time() - stream.heard_at
            if silent_s > limit_s and not stream.paused:
                text = f"no byte from the source for {silent_s:.1f} s, heartbeats were due every {limit_s / _SILENT_PERIODS:g} s"
                return UpstreamError(FailureKind.NETWORK, text, name="source_silent")

    async def _place_to_resume(self) -> Position | None:
        """Return the end of the archive's last whole transaction; what follows it is removed first."""
        generation = self._archive.current
        if generation.state is GenerationState.FAILED:
            return await generation.reopen_writer()
        return await generation.trim()


def check_file_behind(gap: AcceptedGap, ingest: Ingest) -> None:
    """Compare the format description of the stream with the examined file. Raises: UpstreamError IDENTITY."""
    if ingest.created == gap.created and ingest.server_id == gap.server_id:
        return
    raise UpstreamError(
        FailureKind.IDENTITY,
        f"{gap.to.file} of the source was made at {ingest.created} by server_id {ingest.server_id}; the one behind the accepted "
        f"gap at {gap.created} by server_id {gap.server_id} (Unix seconds)",
        "The source was reset again, or it is a relay that takes this one for a replica before the gap: then give "
        "source.server_id another number. START REPLICA looks again.",
        name="source_was_reset",
    )


def check_same_file(held: ArchivedFile, ingest: Ingest) -> None:
    """Compare the format description of the stream with the archived file's. Raises: UpstreamError IDENTITY."""
    if ingest.created == held.created and ingest.server_id == held.server_id:
        return
    raise UpstreamError(
        FailureKind.IDENTITY,
        f"{held.name} of the source was made at {ingest.created} by server_id {ingest.server_id}; "
        f"the archived one at {held.created} by server_id {held.server_id} (Unix seconds)",
        f"The source was reset (RESET MASTER), restored, or is another one: then give it a source.name of its own. {ACCEPT_GAP}",
        name="source_was_reset",
    )
