"""What a source says of its GTIDs, and whether it has what the archive has."""

from pathlib import Path

import pytest

from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidList
from relay.upstream.attach.missing_gtids import missing_in_its_files, missing_in_set
from relay.upstream.source.source_gtids import (
    SourceGtids,
    keep_source_gtids,
    kept_source_gtids,
    owned_set,
    read_source_gtids,
)

A = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
B = "12345678-aaaa-aaaa-aaaa-aaaaaaaaaaaa"


class Source:
    """Answers from a table."""

    def __init__(self, **variables: str) -> None:
        self.variables = variables
        self.asked: list[str] = []

    async def variable(self, name: str) -> str | None:
        self.asked.append(name)
        return self.variables.get(name)


def mysql(executed: str) -> SourceGtids:
    return SourceGtids("ON", GtidSet.from_text(executed))


def mariadb(state: str) -> SourceGtids:
    return SourceGtids(binlog_state=GtidList.from_text(state))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", ""),
        (f"{A}:9#3:7#2", f"{A}:7:9"),
        (f"{A}:9#28{A}:foo:7#27", f"{A}:9:foo:7"),
        (f"{A}:9#28{B}:1#5", f"{A}:9,{B}:1"),
        (f"{A}:9#3,\n{B}:1#5", f"{A}:9,{B}:1"),
    ],
)
def test_owned_transactions_are_read_with_their_threads_left_out(text: str, wanted: str) -> None:
    assert owned_set(text) == GtidSet.from_text(wanted)


async def test_a_transaction_that_is_being_committed_counts_as_the_sources() -> None:
    source = Source(gtid_mode="ON", gtid_owned=f"{A}:8#4", gtid_executed=f"{A}:1-7", gtid_purged=f"{A}:1-2")
    gtids = await read_source_gtids(source, "mysql")
    assert gtids == SourceGtids("ON", GtidSet.from_text(f"{A}:1-8"), GtidSet.from_text(f"{A}:1-2"))
    # The other way round one could be committed between the two questions and be in neither answer.
    assert source.asked.index("gtid_owned") < source.asked.index("gtid_executed")


async def test_a_source_that_knows_no_gtids_is_asked_for_nothing_more() -> None:
    source = Source()
    assert await read_source_gtids(source, "mysql") == SourceGtids()
    assert source.asked == ["gtid_mode"]


async def test_mariadbs_state_is_not_asked_for_where_it_would_wait() -> None:
    source = Source(gtid_domain_id="7", gtid_strict_mode="1", gtid_binlog_state="7-1-5")
    assert (await read_source_gtids(source, "mariadb", with_state=False)).binlog_state is None
    assert await read_source_gtids(source, "mariadb") == SourceGtids(
        binlog_state=GtidList.from_text("7-1-5"), domain_id=7, strict_mode=True
    )


def test_what_the_source_said_is_there_again_after_a_restart(tmp_path: Path) -> None:
    gtids = SourceGtids("ON_PERMISSIVE", GtidSet.from_text(f"{A}:1-9"), GtidSet.from_text(f"{A}:1-2"), None, 3, True)
    keep_source_gtids(tmp_path, gtids)
    kept = kept_source_gtids(tmp_path)
    assert kept is not None
    assert (kept.mode, kept.purged, kept.domain_id, kept.strict_mode) == ("ON_PERMISSIVE", gtids.purged, 3, True)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"gtid_mode": "ON", "gtid_purged": "x"}'])
def test_a_kept_file_that_cannot_be_read_is_as_none(tmp_path: Path, text: str) -> None:
    assert kept_source_gtids(tmp_path) is None
    (tmp_path / "source-gtids.json").write_text(text)
    assert kept_source_gtids(tmp_path) is None


@pytest.mark.parametrize(
    ("archived", "source", "lost"),
    [
        (f"{A}:1-5", f"{A}:1-5", ""),
        (f"{A}:1-5", f"{A}:1-9,{B}:1", ""),
        (f"{A}:1-5", f"{A}:1-3", f"{A}:4-5"),
        (f"{A}:1-5,{B}:1", "", f"{B}:1,{A}:1-5"),
    ],
)
def test_the_transactions_that_a_mysql_source_lacks_are_named(archived: str, source: str, lost: str) -> None:
    assert missing_in_set(GtidSet.from_text(archived), mysql(source), same_server=True) == lost


def test_a_mysql_source_that_knows_no_gtids_lacks_none() -> None:
    assert missing_in_set(GtidSet.from_text(f"{A}:1"), SourceGtids(), same_server=True) == ""


@pytest.mark.parametrize(
    ("archived", "source", "same_server", "lost"),
    [
        ("0-1-5", "0-1-5", True, ""),
        ("0-1-5", "0-1-9,0-2-10", True, ""),
        ("0-1-5", "0-1-4", True, "0-1-5"),
        ("0-1-5", "0-1-3", True, "those after 0-1-3 up to 0-1-5"),
        ("0-1-5,0-2-6", "0-1-5", True, "all of domain 0 and server 2 up to 0-2-6"),
        ("0-1-5", "", True, "all of domain 0 and server 1 up to 0-1-5"),
        # FLUSH BINARY LOGS DELETE_DOMAIN_ID=(0)
        ("0-1-5,7-1-1", "7-1-1", True, ""),
        ("0-1-5,7-1-1", "7-1-1", False, "all of domain 0 and server 1 up to 0-1-5"),
    ],
)
def test_the_groups_that_a_mariadb_source_lacks_are_named(
    archived: str, source: str, same_server: bool, lost: str
) -> None:
    assert missing_in_set(GtidList.from_text(archived), mariadb(source), same_server=same_server) == lost


def test_a_mariadb_source_whose_state_was_not_asked_for_lacks_nothing() -> None:
    held = GtidList.from_text("0-1-5")
    assert missing_in_set(held, SourceGtids(), same_server=True) == ""
    assert missing_in_its_files(held, held, SourceGtids(), same_server=True) == ""


@pytest.mark.parametrize(
    ("own", "executed", "source", "lost"),
    [
        ("0-1-3,0-2-4", "0-9-2,0-1-3,0-2-4", "0-1-3,0-2-4", ""),
        ("0-1-3,0-2-4", "0-9-2,0-1-3,0-2-4", "0-1-3", "all of domain 0 and server 2 up to 0-2-4"),
        ("0-1-3,0-2-4", "0-9-2,0-1-3,0-2-4", "0-2-4", "all of domain 0 and server 1 up to 0-1-3"),
        # What the generation before had, and this one has not sent yet.
        ("0-1-3", "0-9-2,0-1-8", "0-1-6", "those after 0-1-6 up to 0-1-8"),
        # FLUSH BINARY LOGS DELETE_DOMAIN_ID=(7), which an earlier generation still has
        ("0-1-3", "7-1-1,0-1-3", "0-1-3", ""),
        ("0-1-3", "7-1-1,0-1-3", "", "all of domain 0 and server 1 up to 0-1-3"),
    ],
)
def test_of_the_servers_before_it_a_mariadb_source_needs_the_last_group_of_each_domain(
    own: str, executed: str, source: str, lost: str
) -> None:
    found = missing_in_its_files(
        GtidList.from_text(own), GtidList.from_text(executed), mariadb(source), same_server=True
    )
    assert found == lost
