"""What a new replica of a view is to be told, in the words of its version."""

from pathlib import Path
from uuid import UUID

import pytest

from protocol.gtid.gtid_set import GtidSet
from protocol.position import Position
from relay.view.rules.settings import GtidPolicy, ViewSettings
from relay.view.seeding.dump_head import DumpPlace
from relay.view.seeding.replica_retries import retry_options
from relay.view.seeding.seed_statements import RelayAddress, seed_statements
from relay.view.view_place import ViewPlace

OWN = "6d0c5a43-9c63-4f4e-8d1f-5a166f0f3cb2"
PLACE = ViewPlace(Position("mysql-bin.000002", 559), Position("mysql-bin.000002", 1223), 126)
RELAY = RelayAddress("relay.example", 3307, "new_replica", True)
EXECUTED = GtidSet.from_text(f"{OWN}:1-126")


def settings(target: str = "mysql-9.7", gtids: GtidPolicy = "assign") -> ViewSettings:
    return ViewSettings("gtid", gtids, UUID(OWN), target)


def statements(
    view: ViewSettings, executed: GtidSet = EXECUTED, relay: RelayAddress = RELAY, *, in_place: bool = False
) -> list[str]:
    return list(seed_statements(view, PLACE, executed, relay, in_place=in_place).statements)


def hints(
    view: ViewSettings, executed: GtidSet = EXECUTED, relay: RelayAddress = RELAY, *, in_place: bool = False
) -> str:
    return " ".join(seed_statements(view, PLACE, executed, relay, in_place=in_place).hints)


@pytest.mark.parametrize("target", ["mysql-8.4", "mysql-9.7"])
def test_a_new_server_is_told_in_the_words_that_alone_it_knows(target: str) -> None:
    assert statements(settings(target)) == [
        "RESET BINARY LOGS AND GTIDS",
        f"SET GLOBAL gtid_purged = '{OWN}:1-126'",
        "CHANGE REPLICATION SOURCE TO\n  SOURCE_HOST = 'relay.example',\n  SOURCE_PORT = 3307,\n  SOURCE_USER = 'new_replica',\n"
        "  SOURCE_PASSWORD = 'PASSWORD',\n  SOURCE_SSL = 1,\n  SOURCE_CONNECT_RETRY = 10,\n  SOURCE_RETRY_COUNT = 86400,\n"
        "  SOURCE_AUTO_POSITION = 1",
        "START REPLICA",
    ]


def test_8_0_knows_the_new_words_but_for_the_reset() -> None:
    reset, _purged, change, start = statements(settings("mysql-8.0"))
    assert (reset, start) == ("RESET MASTER", "START REPLICA") and change.startswith("CHANGE REPLICATION SOURCE TO")


@pytest.mark.parametrize("target", ["mysql-5.6", "mysql-5.7"])
def test_an_old_server_is_told_in_the_old_words(target: str) -> None:
    reset, purged, change, start = statements(settings(target), relay=RELAY._replace(tls=False))
    assert (reset, start) == ("RESET MASTER", "START SLAVE") and purged.endswith(":1-126'")
    assert change.startswith("CHANGE MASTER TO\n  MASTER_HOST") and change.endswith("MASTER_AUTO_POSITION = 1")
    assert "PUBLIC_KEY" not in change and "log_slave_updates" in hints(settings(target))


def test_without_tls_a_new_server_is_told_so_and_has_to_ask_for_the_key() -> None:
    assert "SOURCE_SSL = 0,\n  GET_SOURCE_PUBLIC_KEY = 1" in statements(settings(), relay=RELAY._replace(tls=False))[2]


def test_where_nothing_is_executed_nothing_is_purged() -> None:
    assert statements(settings(), GtidSet())[:1] == ["RESET BINARY LOGS AND GTIDS"]
    assert not any("gtid_purged" in statement for statement in statements(settings(), GtidSet()))
    assert "AUTO_POSITION = 1" in statements(settings(), GtidSet())[-2]


def test_an_anonymous_view_is_followed_by_its_own_file_and_position() -> None:
    change, start = statements(settings(gtids="anonymous"), GtidSet())
    assert "SOURCE_LOG_FILE = 'mysql-bin.000002'" in change and "SOURCE_LOG_POS = 1223" in change
    assert change.endswith("ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS = LOCAL") and start == "START REPLICA"
    assert "OFF_PERMISSIVE" in hints(settings(gtids="anonymous"), GtidSet())
    old = statements(settings("mysql-5.6", "anonymous"), GtidSet())
    assert "ASSIGN" not in old[0] and "MASTER_LOG_POS = 1223" in old[0]


def test_5_5_is_not_told_of_auto_position_which_it_does_not_know() -> None:
    change, start = statements(settings("mysql-5.5", "anonymous"), GtidSet())
    assert change.endswith("MASTER_LOG_POS = 1223") and start == "START SLAVE"
    assert statements(settings("mysql-5.6", "anonymous"), GtidSet())[0].endswith("MASTER_AUTO_POSITION = 0")


@pytest.mark.parametrize(
    ("made_by", "path", "words", "not_there"),
    [
        ("mysqldump", "/d/shop.sql", "s/NO_AUTO_CREATE_USER//' /d/shop.sql) | mysql", "zcat"),
        ("a dump", "/d/my shop.sql", "s/NO_AUTO_CREATE_USER//' '/d/my shop.sql') | mysql", "zcat"),
        ("mydumper", "/d/shop/metadata", "myloader --directory /d/shop.", "| mysql"),
        ("xtrabackup", "/d/shop/xtrabackup_binlog_info", "5.7, 8.0 and 8.4", "| mysql"),
    ],
)
def test_what_was_copied_is_restored_as_its_program_wants_it(
    made_by: str, path: str, words: str, not_there: str
) -> None:
    taken = DumpPlace(PLACE.source, made_by, Path(path), 1)
    first = seed_statements(settings(), PLACE, EXECUTED, RELAY, taken=taken).hints[0]
    assert words in first and not_there not in first and path != first


def test_an_old_server_gets_the_dump_as_it_is() -> None:
    taken = DumpPlace(PLACE.source, "mysqldump", Path("/d/shop.sql"), 1)
    first = seed_statements(settings("mysql-5.7"), PLACE, EXECUTED, RELAY, taken=taken).hints[0]
    assert "cat /d/shop.sql) | mysql" in first and "NO_AUTO_CREATE_USER" not in first


def test_definers_are_to_be_made_before_replicas_need_them() -> None:
    taken = DumpPlace(PLACE.source, "mysqldump", Path("/d/my shop.sql.gz"), 1, is_packed=True)
    told = " ".join(seed_statements(settings(), PLACE, EXECUTED, RELAY, taken=taken).hints)
    assert "1449: zcat '/d/my shop.sql.gz' | grep -o 'DEFINER=`[^`]*`@`[^`]*`' | sort -u" in told


@pytest.mark.parametrize(("target", "words"), [("mysql-9.7", "SET PERSIST"), ("mysql-5.7", "SET GLOBAL")])
def test_events_of_the_dump_must_not_run_beside_their_changes(target: str, words: str) -> None:
    taken = DumpPlace(PLACE.source, "mysqldump", Path("/d/shop.sql"), 1)
    hints = " ".join(seed_statements(settings(target), PLACE, EXECUTED, RELAY, taken=taken).hints)
    assert f"{words} event_scheduler = OFF there before the dump is restored" in hints


@pytest.mark.parametrize(
    ("prefix", "flavour", "version", "options"),
    [
        ("SOURCE", "mysql", (9, 7, 4), ["SOURCE_CONNECT_RETRY = 10", "SOURCE_RETRY_COUNT = 86400"]),
        ("MASTER", "mysql", (5, 6, 24), ["MASTER_CONNECT_RETRY = 10", "MASTER_RETRY_COUNT = 86400"]),
        ("MASTER", "mysql", (5, 5), ["MASTER_CONNECT_RETRY = 10"]),
        ("MASTER", "mariadb", (10, 11, 19), ["MASTER_CONNECT_RETRY = 10"]),
    ],
)
def test_a_replica_goes_on_trying_for_days(
    prefix: str, flavour: str, version: tuple[int, ...], options: list[str]
) -> None:
    assert retry_options(prefix, flavour, version) == options


def test_a_view_that_keeps_is_followed_by_gtid_where_the_source_has_any() -> None:
    assert "AUTO_POSITION = 1" in statements(settings(gtids="keep"))[2]
    assert "SOURCE_LOG_POS = 1223" in statements(settings(gtids="keep"), GtidSet())[0]


def test_a_replica_in_place_keeps_what_it_has_executed() -> None:
    stop, purged, *_ = statements(settings(), in_place=True)
    assert (stop, purged) == ("STOP REPLICA", f"SET GLOBAL gtid_purged = '+{OWN}:1-126'")
    assert "gtid_mode must be ON" in hints(settings(), in_place=True)
    assert statements(settings("mysql-5.7"), in_place=True)[1].endswith(f"= '{OWN}:1-126'")


@pytest.mark.parametrize("gtids", ["keep", "anonymous"])
def test_a_replica_in_place_that_follows_by_position_is_not_told_to_refuse_what_has_no_gtid(gtids: GtidPolicy) -> None:
    told = hints(settings(gtids=gtids), GtidSet(), in_place=True)
    assert "keeps its data" in told and "gtid_mode must be ON" not in told


def test_without_an_account_that_sees_the_view_the_hint_says_which_is_needed() -> None:
    assert 'view = "gtid"' in hints(settings(), relay=RELAY._replace(user=""))


def test_a_quote_in_a_name_stays_in_the_text() -> None:
    change = statements(settings(), relay=RELAY._replace(user="o'neill\\"))[2]
    assert r"SOURCE_USER = 'o''neill\\'" in change


def test_no_statement_and_no_hint_has_a_password() -> None:
    assert all("PASSWORD = 'PASSWORD'" in text for text in statements(settings()) if "PASSWORD" in text)
