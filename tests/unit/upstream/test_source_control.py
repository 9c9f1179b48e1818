"""Stopping, starting and changing the source of a running relay, and what its status says of it."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import structlog.testing
from pydantic import SecretStr

from protocol.errors import StatementRefused
from relay.archive.archive import Archive
from relay.archive.generation import Generation
from relay.archive_inspection.listing import read_ledger
from relay.config import DirectorySource, ServerSource, SslMode
from relay.upstream import failover
from relay.upstream.control import SourceChange, SourceControl
from relay.upstream.server_source import ServerUpstream
from relay.upstream.source import reconnect
from relay.upstream.source.source_errors import FailureKind, UpstreamError
from relay.upstream.source.source_settings import kept_source_settings
from tests.support.binlog_builder import BinlogBuilder
from tests.support.fake_source import PASSWORD, USER, FakeSource, with_crc

FILE = "mysql-bin.000001"
BUILT = BinlogBuilder().ddl().transaction(10, 40)
LONGER = BinlogBuilder().ddl().transaction(10, 40).transaction(20, 40)
UUID = "99999999-2222-3333-4444-555555555555"
WAIT_S = 10.0


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The policy is tested elsewhere."""
    monkeypatch.setattr(reconnect, "_PAUSES", dict.fromkeys(reconnect._PAUSES, (0.02, 0.1)))


@pytest.fixture
def source() -> Iterator[FakeSource]:
    """A fake source with one file."""
    with FakeSource({FILE: bytes(BUILT.data)}) as fake:
        yield fake


def settings_for(source: FakeSource) -> ServerSource:
    return ServerSource(
        host="127.0.0.1",
        port=source.port,
        user=USER,
        password=SecretStr(PASSWORD),
        server_id=4242,
        connect_timeout_s=2.0,
    )


class Controlled:
    """An archive and the control of what fills it."""

    def __init__(self, generation: Generation, settings: ServerSource | DirectorySource) -> None:
        self.generation = generation
        self.ended: list[Exception] = []
        self.control = SourceControl(Archive.of(generation), settings, UUID, self.ended.append)

    async def until(self, condition: Callable[[], object]) -> None:
        """Waits until `condition()` is true."""
        deadline = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < deadline, self.control.status()
            await asyncio.sleep(0.01)

    async def until_end(self, offset: int) -> None:
        """Waits until the archive ends there."""
        await self.until(lambda: self.generation.end is not None and self.generation.end.offset == offset)


@asynccontextmanager
async def controlled(directory: Path, settings: ServerSource | DirectorySource) -> AsyncIterator[Controlled]:
    generation = await Generation.open(directory / "archive")
    made = Controlled(generation, settings)
    try:
        yield made
    finally:
        await made.control.close()
        await generation.close()


async def test_status_before_the_start_and_while_streaming(tmp_path: Path, source: FakeSource) -> None:
    async with controlled(tmp_path, settings_for(source)) as made:
        before = made.control.status()
        assert (before.io_running, before.state, before.archived_file) == ("No", "", None)
        made.control.begin()
        await made.until_end(BUILT.size)
        now = made.control.status()
        assert (now.io_running, now.state) == ("Yes", "Waiting for source to send event")
        assert now.state_in("master") == "Waiting for master to send event"
        assert (now.host, now.port, now.user, now.kind) == ("127.0.0.1", source.port, USER, "server")
        assert (now.archived_file, now.archived_offset) == (FILE, BUILT.size)
        assert (now.server_id, now.server_uuid, now.own_server_id) == (1, source.server_uuid, 4242)
        assert now.attached_at is not None and abs(now.attached_at - time.time()) < 60
        assert not now.started_by_operator and not now.stopped_by_operator


async def test_stop_ends_the_stream_and_start_goes_on_from_the_archives_end(tmp_path: Path, source: FakeSource) -> None:
    async with controlled(tmp_path, settings_for(source)) as made:
        made.control.begin()
        await made.until_end(BUILT.size)
        assert await made.control.stop()
        stopped = made.control.status()
        assert (stopped.io_running, stopped.stopped_by_operator, stopped.attached_at) == ("No", True, None)
        source.files = {FILE: bytes(LONGER.data)}
        await asyncio.sleep(0.1)
        assert made.generation.end is not None and made.generation.end.offset == BUILT.size
        assert await made.control.start()
        await made.until_end(LONGER.size)
        assert source.dumps == [(FILE, 4), (FILE, BUILT.size)]
        again = made.control.status()
        assert (again.io_running, again.started_by_operator, again.stopped_by_operator) == ("Yes", True, False)
        assert made.ended == []


async def test_stop_and_start_twice_say_that_nothing_was_done(tmp_path: Path, source: FakeSource) -> None:
    async with controlled(tmp_path, settings_for(source)) as made:
        made.control.begin()
        await made.until_end(BUILT.size)
        assert not await made.control.start()
        assert await made.control.stop()
        assert not await made.control.stop()


async def test_stop_while_the_source_cannot_be_reached(tmp_path: Path, source: FakeSource) -> None:
    source.close()
    async with controlled(tmp_path, settings_for(source)) as made:
        made.control.begin()
        await made.until(lambda: made.control.status().retries > 1)
        trying = made.control.status()
        assert (trying.io_running, trying.last_error_number) == ("Connecting", 2003)
        assert "cannot be reached" in trying.last_error_text
        with pytest.raises(StatementRefused, match=r"tried again and again .*cannot be reached.*STOP REPLICA first"):
            await made.control.accept_gap(None, "somebody")
        assert await made.control.stop()
        with pytest.raises(StatementRefused, match="The archive is empty"):
            await made.control.accept_gap(None, "somebody")
        assert made.control.status().io_running == "No"


async def test_an_error_that_no_retry_cures_is_left_by_start_once_it_is_cured(
    tmp_path: Path, source: FakeSource
) -> None:
    async with controlled(tmp_path, settings_for(source)) as made:
        made.control.begin()
        await made.until_end(BUILT.size)
        source.files = {FILE: bytes(BUILT.data[:-20])}
        source.drop()
        await made.until(lambda: made.ended)
        error = made.ended[0]
        assert isinstance(error, UpstreamError) and error.name == "source_lost_its_tail"
        assert made.control.status().last_error_text.endswith("Nothing is tried again before START REPLICA")
        status = made.control.status()
        assert (status.io_running, status.last_error_number, status.stopped_by_operator) == ("No", 1236, False)
        assert "came back shorter" in status.last_error_text and status.last_error_at is not None
        source.files = {FILE: bytes(LONGER.data)}
        assert await made.control.start()
        await made.until_end(LONGER.size)
        assert made.control.status().last_error_number == 0


async def test_a_source_that_cannot_be_looked_at_leaves_a_gap_as_it_is(tmp_path: Path, source: FakeSource) -> None:
    async with controlled(tmp_path, settings_for(source)) as made:
        made.control.begin()
        await made.until_end(BUILT.size)
        assert await made.control.stop()
        with pytest.raises(StatementRefused, match="There is no gap"):
            await made.control.accept_gap(None, "somebody")
        source.close()
        with pytest.raises(StatementRefused, match=r"The source cannot be looked at: .*cannot be reached"):
            await made.control.accept_gap(None, "somebody")
        assert not made.control.running and not (made.generation.directory / "gap-accepted.json").exists()


async def test_the_error_of_a_lost_stream_is_gone_when_the_source_sends_again(
    tmp_path: Path, source: FakeSource
) -> None:
    async with controlled(tmp_path, settings_for(source)) as made:
        made.control.begin()
        await made.until_end(BUILT.size)
        source.drop()
        await made.until(lambda: made.control.status().last_error_number)
        await made.until(lambda: len(source.dumps) == 2 and not made.control.status().last_error_number)
        assert (made.control.status().io_running, made.control.status().retries) == ("Yes", 0)


async def test_a_change_needs_a_stopped_source(tmp_path: Path, source: FakeSource) -> None:
    async with controlled(tmp_path, settings_for(source)) as made:
        made.control.begin()
        await made.until_end(BUILT.size)
        with pytest.raises(StatementRefused, match="run STOP REPLICA first") as refused:
            await made.control.change(SourceChange(host="127.0.0.2"))
        assert refused.value.number == 1198


async def test_a_changed_address_is_used_at_the_next_start(tmp_path: Path, source: FakeSource) -> None:
    with FakeSource({FILE: bytes(LONGER.data)}, password="another") as other:
        async with controlled(tmp_path, settings_for(source)) as made:
            made.control.begin()
            await made.until_end(BUILT.size)
            await made.control.stop()
            await made.control.change(SourceChange(port=other.port, password="another", file=FILE, position=BUILT.size))
            await made.control.start()
            await made.until_end(LONGER.size)
            status = made.control.status()
            assert (status.port, status.changed_by_operator) == (other.port, True)
            assert "another" not in repr(status)


@pytest.mark.parametrize(("file", "position"), [(FILE, 4), ("mysql-bin.000002", None), (None, BUILT.size - 1)])
async def test_a_change_to_another_position_is_refused(
    tmp_path: Path, source: FakeSource, file: str | None, position: int | None
) -> None:
    async with controlled(tmp_path, settings_for(source)) as made:
        made.control.begin()
        await made.until_end(BUILT.size)
        await made.control.stop()
        with pytest.raises(StatementRefused, match=f"where the archive ends: {FILE}, position {BUILT.size}"):
            await made.control.change(SourceChange(host="127.0.0.2", file=file, position=position))
        assert made.control.status().host == "127.0.0.1"


async def test_a_change_to_values_that_cannot_be_is_refused_without_showing_the_password(
    tmp_path: Path, source: FakeSource
) -> None:
    async with controlled(tmp_path, settings_for(source)) as made:
        with pytest.raises(StatementRefused, match="port") as refused:
            await made.control.change(SourceChange(port=70000, password="not-to-be-shown"))
        assert "not-to-be-shown" not in repr(refused.value) + repr(SourceChange(password="not-to-be-shown"))


async def test_a_directory_is_stopped_and_started_but_not_changed(tmp_path: Path) -> None:
    binlogs = tmp_path / "binlogs"
    binlogs.mkdir()
    (binlogs / FILE).write_bytes(BUILT.data)
    settings = DirectorySource(kind="directory", path=binlogs, poll_interval_s=0.01)
    async with controlled(tmp_path, settings) as made:
        made.control.begin()
        await made.until_end(BUILT.size)
        status = made.control.status()
        assert (status.kind, status.host, status.io_running) == ("directory", str(binlogs), "Yes")
        assert await made.control.stop()
        with pytest.raises(StatementRefused, match="follows the directory"):
            await made.control.change(SourceChange(host="127.0.0.1"))
        with pytest.raises(StatementRefused, match="put the missing files there"):
            await made.control.accept_gap(None, "somebody")
        (binlogs / FILE).write_bytes(LONGER.data)
        assert await made.control.start()
        await made.until_end(LONGER.size)


@pytest.mark.parametrize(
    ("change", "mode"),
    [
        (SourceChange(ssl=True), "required"),
        (SourceChange(ssl=False), "disabled"),
        (SourceChange(ssl=True, ssl_verify_server_cert=True), "verify_identity"),
        (SourceChange(ssl=True, ssl_verify_server_cert=False), "required"),
        (SourceChange(ssl=True, ssl_verify_server_cert=False, ssl_ca="/ca.pem"), "verify_ca"),
        (SourceChange(ssl=True, ssl_ca="/ca.pem"), "verify_ca"),
        (SourceChange(ssl_verify_server_cert=False), "preferred"),
        (SourceChange(host="db"), "preferred"),
    ],
)
async def test_the_ssl_options_of_a_statement_become_a_mode(
    tmp_path: Path, source: FakeSource, change: SourceChange, mode: str
) -> None:
    async with controlled(tmp_path, settings_for(source)) as made:
        await made.control.change(change)
        assert made.control.status().ssl_mode == mode


@pytest.mark.parametrize(
    ("before", "change", "mode"),
    [
        ("disabled", SourceChange(ssl_verify_server_cert=False), "disabled"),
        ("verify_identity", SourceChange(ssl_verify_server_cert=False), "verify_ca"),
        ("verify_identity", SourceChange(ssl=True), "verify_identity"),
        ("verify_identity", SourceChange(ssl=True, ssl_verify_server_cert=False, ssl_ca=""), "required"),
        ("verify_ca", SourceChange(ssl=True), "verify_ca"),
    ],
)
async def test_an_authority_that_is_named_is_asked_until_somebody_takes_it_away(
    tmp_path: Path, source: FakeSource, before: SslMode, change: SourceChange, mode: str
) -> None:
    settings = settings_for(source).model_copy(update={"ssl_mode": before, "ssl_ca": tmp_path / "ca.pem"})
    async with controlled(tmp_path, settings) as made:
        await made.control.change(change)
        assert made.control.status().ssl_mode == mode


OTHER_UUID = "22222222-3333-4444-5555-666666666666"


async def stopped_at_the_end(made: Controlled) -> None:
    made.control.begin()
    await made.until_end(BUILT.size)
    await made.control.stop()


async def test_another_server_with_the_same_binlogs_is_accepted_once_when_told(
    tmp_path: Path, source: FakeSource
) -> None:
    with FakeSource({FILE: bytes(LONGER.data)}, server_uuid=OTHER_UUID, server_id=9) as other:
        async with controlled(tmp_path, settings_for(source)) as made:
            await stopped_at_the_end(made)
            await made.control.change(SourceChange(port=other.port))
            await made.control.start()
            await made.until_end(LONGER.size)
            assert made.generation.identity is not None
            assert (made.generation.identity.server_uuid, made.generation.identity.server_id) == (OTHER_UUID, 9)
            assert made.control.status().server_uuid == OTHER_UUID
            other.server_uuid = source.server_uuid
            other.drop()
            await made.until(lambda: made.ended)
            assert isinstance(made.ended[0], UpstreamError) and made.ended[0].name == "source_identity_changed"
        assert [row.kind for row in read_ledger(tmp_path / "archive")].count("source_changed") == 1


async def test_another_server_is_refused_when_nobody_said_so(tmp_path: Path, source: FakeSource) -> None:
    async with controlled(tmp_path, settings_for(source)) as made:
        await stopped_at_the_end(made)
        source.server_uuid = OTHER_UUID
        await made.control.start()
        await made.until(lambda: made.ended)
        assert isinstance(made.ended[0], UpstreamError) and made.ended[0].name == "source_identity_changed"
        assert "CHANGE REPLICATION SOURCE" in made.ended[0].advice


def changed_at(offset: int) -> bytes:
    """LONGER, with one other byte and a right checksum."""
    event = next(event for event in LONGER.events if event.start <= offset < event.end)
    data = bytearray(LONGER.data)
    data[offset] ^= 1
    data[event.start : event.end] = with_crc(bytes(data[event.start : event.end]))
    return bytes(data)


LAST = next(event for event in BUILT.events if event.end == BUILT.size)


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (changed_at(LAST.end - 6), "source_file_differs"),
        (changed_at(LAST.start + 5), "source_file_differs"),
        (bytes(BUILT.data[: LAST.start]), "source_file_differs"),
        (bytes(BinlogBuilder().ddl().transaction(7).data), "source_file_differs"),
    ],
    ids=["another body", "another server_id", "shorter", "other events"],
)
async def test_another_server_whose_file_differs_is_refused_and_nothing_is_overwritten(
    tmp_path: Path, source: FakeSource, data: bytes, name: str
) -> None:
    with FakeSource({FILE: data}, server_uuid=OTHER_UUID) as other:
        async with controlled(tmp_path, settings_for(source)) as made:
            await stopped_at_the_end(made)
            before = (tmp_path / "archive" / FILE).read_bytes()
            await made.control.change(SourceChange(port=other.port))
            await made.control.start()
            await made.until(lambda: made.ended)
            error = made.ended[0]
            assert isinstance(error, UpstreamError) and error.name == name, error
            assert (tmp_path / "archive" / FILE).read_bytes() == before
            assert made.generation.identity is not None and made.generation.identity.server_uuid == source.server_uuid


async def test_markers_make_no_difference(tmp_path: Path, source: FakeSource) -> None:
    async with controlled(tmp_path / "first", settings_for(source)) as made:
        await stopped_at_the_end(made)
    marked = (tmp_path / "first" / "archive" / FILE).read_bytes()
    assert marked != bytes(BUILT.data)
    with FakeSource({FILE: marked}, server_uuid=OTHER_UUID) as other:
        async with controlled(tmp_path, settings_for(source)) as made:
            await stopped_at_the_end(made)
            await made.control.change(SourceChange(port=other.port))
            await made.control.start()
            await made.until(lambda: made.control.status().server_uuid == OTHER_UUID)
            await made.until(lambda: made.control.status().io_running == "Yes")
            assert made.ended == []


async def test_a_stop_that_was_swallowed_on_the_way_is_repeated(
    tmp_path: Path, source: FakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def deaf_once(self: ServerUpstream) -> UpstreamError:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        await asyncio.sleep(60)
        raise AssertionError

    monkeypatch.setattr(ServerUpstream, "run", deaf_once)
    async with controlled(tmp_path, settings_for(source)) as made:
        made.control.begin()
        await asyncio.sleep(0.01)
        async with asyncio.timeout(5):
            assert await made.control.stop()


async def test_a_start_while_a_stop_whose_client_left_goes_on_makes_no_second_stream(
    tmp_path: Path, source: FakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = 0

    async def deaf_once(self: ServerUpstream) -> UpstreamError:
        nonlocal running
        running += 1
        try:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(60)
            await asyncio.sleep(60)
        finally:
            running -= 1
        raise AssertionError

    monkeypatch.setattr(ServerUpstream, "run", deaf_once)
    async with controlled(tmp_path, settings_for(source)) as made:
        made.control.begin()
        await asyncio.sleep(0.01)
        stopping = asyncio.create_task(made.control.stop())
        await asyncio.sleep(0.01)
        stopping.cancel()
        await asyncio.wait({stopping})
        await made.control.start()
        await asyncio.sleep(0.01)
        assert running == 1


async def test_a_change_of_the_password_alone_accepts_no_other_server(tmp_path: Path, source: FakeSource) -> None:
    async with controlled(tmp_path, settings_for(source)) as made:
        await stopped_at_the_end(made)
        source.server_uuid = OTHER_UUID
        await made.control.change(SourceChange(password=PASSWORD))
        await made.control.start()
        await made.until(lambda: made.ended)
        assert isinstance(made.ended[0], UpstreamError) and made.ended[0].name == "source_identity_changed"


class SlowToEnd:
    """An upstream that has much to write down when it is cancelled."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.ended = False

    async def run(self) -> UpstreamError:
        try:
            self.began.set()
            await asyncio.Event().wait()
        finally:
            words = asyncio.ensure_future(asyncio.sleep(0.1))
            while not words.done():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.shield(words)
            self.ended = True
        raise AssertionError


async def test_a_relay_that_ends_while_it_goes_over_to_another_source_waits_for_the_first_ones_end(
    tmp_path: Path, source: FakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with controlled(tmp_path, settings_for(source)) as made:
        upstream = SlowToEnd()
        monkeypatch.setattr(made.control, "_upstream", lambda: upstream)
        made.control.begin()
        await upstream.began.wait()
        made.control._link.unreachable_since = time.monotonic()
        taking = asyncio.create_task(made.control._take_over(settings_for(source), "it was unreachable"))
        await asyncio.sleep(0.02)
        # As the look for other sources is when the relay ends.
        taking.cancel()
        await asyncio.wait({taking})
        following = made.control._following
        await made.control.close()
        assert upstream.ended and following is not None and following.done()


async def test_a_source_that_is_named_after_another_refused_is_not_said_to_refuse(
    tmp_path: Path, source: FakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failover, "_LOOK_S", 0.005)
    monkeypatch.setattr(failover, "_AGAIN_S", 0.01)
    first = settings_for(source)
    second = first.model_copy(update={"host": "db2"})
    generation = await Generation.open(tmp_path / "archive")
    control = SourceControl(Archive.of(generation), first, UUID, lambda error: None, candidates=(first, second))
    with structlog.testing.capture_logs() as logs:
        looking = asyncio.create_task(control._failover.run(control._followed))
        control._link.lost(UpstreamError(FailureKind.IDENTITY, "it lacks transactions"), final=True)
        await control.change(SourceChange(host="db2"))
        await asyncio.sleep(0.1)
        looking.cancel()
        await asyncio.wait({looking})
    assert [line for line in logs if line["event"] == "source_candidates"] == []
    await generation.close()


async def test_what_the_source_said_and_the_disk_refused_is_kept_at_the_next_attachment(
    tmp_path: Path, source: FakeSource
) -> None:
    source.variables["binlog_format"] = "ROW"
    async with controlled(tmp_path, settings_for(source)) as made:
        kept = made.generation.directory / "source-settings.json"
        in_the_way = kept.with_name(f"{kept.name}.tmp")
        in_the_way.mkdir()
        with structlog.testing.capture_logs() as logs:
            made.control.begin()
            await made.until_end(BUILT.size)
            await made.until(lambda: "source_variables_not_kept" in [line["event"] for line in logs])
        assert not kept.exists() and made.control.settings == {"binlog_format": "ROW"}
        in_the_way.rmdir()
        source.drop()
        await made.until(kept.exists)
        assert kept_source_settings(made.generation.directory) == {"binlog_format": "ROW"}
