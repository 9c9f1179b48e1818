"""What statements change, and what is said about it."""

import contextlib
from dataclasses import replace

import pytest
import structlog.testing

from protocol.errors import StatementRefused
from protocol.statements import Done, Request, SourceFacts, Words
from protocol.statements.requests import (
    ChangeSource,
    ChangeValue,
    Flush,
    PurgeBefore,
    PurgeTo,
    ShowReplicaStatus,
    StartReplica,
    StopReplica,
)
from relay.admin.console import Console
from relay.archive.generation import Generation
from relay.archive_inspection.listing import read_ledger
from tests.support.console_fakes import (
    FOLLOWING,
    MARIADB,
    MYSQL_56,
    MYSQL_97,
    FakeConnections,
    FakeSource,
    a_client,
    a_replica,
)
from tests.unit.archive.test_purge import NAMES, binlogs_in

OLD, NEW = Words.MASTER_SLAVE, Words.SOURCE_REPLICA
STOPPED = replace(FOLLOWING, io_running="No", state="", attached_at=None)


async def noted(console: Console, request: Request, facts: SourceFacts = MYSQL_56) -> list[tuple[str, int]]:
    """The statement's warnings."""
    answer = await console.answer(request, a_client(facts=facts))
    assert isinstance(answer, Done)
    return [(notice.level, notice.number) for notice in answer.notices]


async def refused(console: Console, request: Request, facts: SourceFacts = MYSQL_56) -> tuple[int, str]:
    """The statement's error."""
    with pytest.raises(StatementRefused) as caught:
        await console.answer(request, a_client(facts=facts))
    return caught.value.number, caught.value.what


def change(**options: ChangeValue) -> ChangeSource:
    return ChangeSource(OLD, options)


# --- PURGE --------------------------------------------------------------------------------------------------------


async def test_purge_to_removes_what_is_before_the_file(console: Console, generation: Generation) -> None:
    assert await noted(console, PurgeTo(NAMES[2])) == []
    assert ([file.name for file in generation.files], binlogs_in(generation.directory)) == (NAMES[2:], NAMES[2:])


async def test_who_purged_is_in_the_ledger(console: Console, generation: Generation) -> None:
    await noted(console, PurgeTo(NAMES[1]))
    rows = read_ledger(generation.directory)
    assert [(row.kind, row.file) for row in rows] == [("purged", NAMES[0])]
    assert "PURGE BINARY LOGS TO 'mysql-bin.000002' by 'root'@'192.0.2.9:40000'" in rows[0].text


async def test_purge_to_an_unknown_file_is_refused_with_what_is_held(console: Console) -> None:
    number, text = await refused(console, PurgeTo("mysql-bin.000099"))
    assert number == 1373
    assert text.startswith("Target log not found in binlog index") and NAMES[0] in text and NAMES[-1] in text


async def test_a_file_that_a_replica_reads_is_kept_with_all_behind_it_and_the_reader_is_named(
    console: Console, generation: Generation, connections: FakeConnections
) -> None:
    connections.clients = [a_replica(3, NAMES[3], 4), a_replica(4, NAMES[1], 130, server_id=77)]
    answer = await console.answer(PurgeTo(NAMES[4]), a_client())
    assert isinstance(answer, Done)
    assert [file.name for file in generation.files] == NAMES[1:]
    (notice,) = answer.notices
    assert (notice.level, notice.number) == ("Warning", 1867)
    assert notice.message.startswith(
        "file mysql-bin.000002 was not purged because it was being read by 1 thread(s), purged only 1 out of 4 files."
    )
    assert "server_id 77" in notice.message and "192.0.2.4" in notice.message


async def test_a_file_that_a_replica_has_asked_for_is_kept(
    console: Console, generation: Generation, connections: FakeConnections
) -> None:
    connections.clients = [a_client(2, "replica", waits_for_position=True, requested_position=(NAMES[0], 4))]
    assert await noted(console, PurgeTo(NAMES[4])) == [("Warning", 1867)]
    assert len(generation.files) == 5


async def test_a_replica_that_asked_for_the_first_file_keeps_it(
    console: Console, generation: Generation, connections: FakeConnections
) -> None:
    connections.clients = [a_client(2, "replica", waits_for_position=True, requested_position=("", 4))]
    assert await noted(console, PurgeTo(NAMES[4])) == [("Warning", 1867)]
    assert len(generation.files) == 5


async def test_purge_before_a_time_goes_by_the_newest_event_of_a_file(console: Console, generation: Generation) -> None:
    assert generation.files[2].last_timestamp < 4000 == generation.files[3].last_timestamp
    assert await noted(console, PurgeBefore(4000)) == []
    assert [file.name for file in generation.files] == NAMES[3:]


async def test_purge_before_now_keeps_the_newest_file_and_says_so(console: Console, generation: Generation) -> None:
    assert await noted(console, PurgeBefore(2e9)) == [("Warning", 1868)]
    assert [file.name for file in generation.files] == NAMES[4:]


# --- STOP, START, CHANGE ------------------------------------------------------------------------------------------


async def test_stop_and_start_reach_the_source(console: Console, source: FakeSource) -> None:
    assert await noted(console, StopReplica(OLD)) == []
    assert not source.running
    assert await noted(console, StartReplica(OLD)) == []
    assert source.running


@pytest.mark.parametrize(
    ("facts", "was_running", "was_stopped"), [(MYSQL_56, 1254, 1255), (MARIADB, 1254, 1255), (MYSQL_97, 3083, 3084)]
)
async def test_what_was_done_before_is_noted_as_the_version_notes_it(
    console: Console, facts: SourceFacts, was_running: int, was_stopped: int
) -> None:
    assert await noted(console, StartReplica(OLD), facts) == [("Note", was_running)]
    await console.answer(StopReplica(OLD), a_client(facts=facts))
    assert await noted(console, StopReplica(OLD), facts) == [("Note", was_stopped)]


async def test_there_is_no_sql_thread_to_stop(console: Console, source: FakeSource) -> None:
    number, text = await refused(console, StopReplica(OLD, frozenset({"SQL"})))
    assert (number, source.running) == (1235, True)
    assert "STOP REPLICA IO_THREAD" in text


@pytest.mark.parametrize(("facts", "number"), [(MYSQL_56, 1198), (MARIADB, 1198), (MYSQL_97, 3021)])
async def test_a_source_that_is_followed_cannot_be_changed(console: Console, facts: SourceFacts, number: int) -> None:
    assert (await refused(console, change(SOURCE_HOST="192.0.2.8"), facts))[0] == number


async def test_change_passes_on_what_a_relay_has(console: Console, source: FakeSource) -> None:
    source.now = STOPPED
    answer = await console.answer(
        change(
            SOURCE_HOST="db2",
            SOURCE_PORT=3307,
            SOURCE_USER="u",
            SOURCE_PASSWORD="geheim",
            SOURCE_LOG_FILE=NAMES[4],
            SOURCE_LOG_POS=800,
            SOURCE_SSL=1,
            SOURCE_HEARTBEAT_PERIOD="2.5",
        ),
        a_client(),
    )
    (made,) = source.changes
    assert (made.host, made.port, made.user, made.password) == ("db2", 3307, "u", "geheim")
    assert (made.file, made.position, made.ssl, made.heartbeat_period_s) == (NAMES[4], 800, True, 2.5)
    assert isinstance(answer, Done) and "relay.toml" in answer.notices[0].message


@pytest.mark.parametrize(
    ("request_", "shown"),
    [
        (StopReplica(OLD), "StopReplica()"),
        (StopReplica(NEW, frozenset({"IO"})), "StopReplica(threads=IO)"),
        (PurgeTo("mysql-bin.000042"), "PurgeTo(file='mysql-bin.000042')"),
        (
            change(SOURCE_HOST="db2", SOURCE_PORT=3307, SOURCE_PASSWORD="geheim", SOURCE_SSL_KEY="/key.pem"),
            "ChangeSource(SOURCE_HOST='db2', SOURCE_PORT=3307, SOURCE_PASSWORD, SOURCE_SSL_KEY)",
        ),
    ],
)
async def test_the_log_says_who_wanted_what_and_no_secret(console: Console, request_: Request, shown: str) -> None:
    with structlog.testing.capture_logs() as logs, contextlib.suppress(StatementRefused):
        await console.answer(request_, a_client())
    assert [line["request"] for line in logs if line["event"] == "statement_by_admin"] == [shown]


async def test_an_option_that_a_relay_cannot_have_is_refused_by_name(console: Console, source: FakeSource) -> None:
    source.now = STOPPED
    number, text = await refused(console, change(SOURCE_HOST="db2", SOURCE_DELAY=3600))
    assert (number, source.changes) == (1235, [])
    assert "SOURCE_DELAY" in text


async def test_an_option_without_effect_is_taken_and_noted(console: Console, source: FakeSource) -> None:
    source.now = STOPPED
    assert await noted(console, change(SOURCE_CONNECT_RETRY=5, SOURCE_AUTO_POSITION=0)) == [
        ("Warning", 1105),
        ("Note", 1105),
    ]


async def test_a_value_that_cannot_be_is_refused_by_the_options_name(console: Console, source: FakeSource) -> None:
    source.now = STOPPED
    for port in ("many", 99999):
        number, text = await refused(console, change(SOURCE_PORT=port))
        assert (number, "SOURCE_PORT: a number from 0 to 65535" in text) == (1210, True)


async def test_what_the_source_side_refuses_is_told(console: Console, source: FakeSource) -> None:
    source.now = STOPPED
    source.refusal = StatementRefused(1210, "not where the archive ends")
    assert await refused(console, change(SOURCE_LOG_POS=4)) == (1210, "not where the archive ends")


@pytest.mark.parametrize(("facts", "number"), [(MYSQL_97, 3074), (MARIADB, 1617)])
@pytest.mark.parametrize(
    "make",
    [
        lambda: StopReplica(OLD, channel="x"),
        lambda: ShowReplicaStatus(OLD, "x"),
        lambda: StartReplica(OLD, channel="x"),
    ],
)
async def test_there_is_no_other_channel(console: Console, make: object, facts: SourceFacts, number: int) -> None:
    assert callable(make)
    assert (await refused(console, make(), facts))[0] == number


# --- FLUSH --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["LOGS", "BINARY LOGS", "PRIVILEGES"])
async def test_what_a_relay_cannot_flush_is_refused_with_the_reason(console: Console, what: str) -> None:
    number, text = await refused(console, Flush((what,)))
    assert number == 1235
    assert "source" in text or "SIGHUP" in text


async def test_flush_hosts_forgives_failed_logins(console: Console, connections: FakeConnections) -> None:
    assert await noted(console, Flush(("HOSTS",))) == []
    assert connections.forgiven == 1


async def test_flush_status_begins_to_count_anew(console: Console, connections: FakeConnections) -> None:
    connections.traffic.most_connections = 40
    assert await noted(console, Flush(("STATUS",))) == []
    assert connections.traffic.most_connections == 0


async def test_a_flush_of_several_things_does_all_or_nothing(console: Console, connections: FakeConnections) -> None:
    assert (await refused(console, Flush(("HOSTS", "BINARY LOGS"))))[0] == 1235
    assert connections.forgiven == 0


@pytest.mark.parametrize("what", ["TABLES WITH READ LOCK", "MASTER"])
async def test_a_flush_of_servers_is_no_syntax_error(console: Console, what: str) -> None:
    number, text = await refused(console, Flush((what,)))
    assert (number, f"FLUSH {what}" in text) == (1235, True)


@pytest.mark.parametrize("what", ["TABLE", "QUERY CACHE", "USER_STATISTICS"])
async def test_a_flush_without_anything_to_do_says_so(console: Console, what: str) -> None:
    assert await noted(console, Flush((what,))) == [("Note", 1105)]


async def test_an_unknown_flush_is_a_syntax_error(console: Console) -> None:
    assert (await refused(console, Flush(("GARBAGE",))))[0] == 1064
