"""Which dump requests are served, and that every sentence fits a server's error field."""

import pytest

from protocol.commands import BinlogDump, DumpFlag
from protocol.errors import ErrorCode, PositionRefused
from relay.archive.read.position_check import PositionCheck, Verdict
from relay.downstream.request.refusal import MAX_TEXT_BYTES
from relay.downstream.request.request_checks import (
    Decision,
    check_checksum,
    check_flavour,
    check_request,
    decide,
    not_here_yet,
)

FILE = "mysql-bin.000042"
LONG = "b" * 400 + "é" * 50 + ".000042"
HELD = ("mysql-bin.000001", FILE)


def request(file: str = FILE, offset: int = 4) -> BinlogDump:
    return BinlogDump(file, offset, DumpFlag(0), 9)


def decided(check: PositionCheck, file: str = FILE, *, may_resume: bool = False) -> Decision:
    return decide(check, file, 1015, files_held=HELD, may_resume=may_resume)


def text_of(check: PositionCheck, file: str = FILE) -> str:
    with pytest.raises(PositionRefused) as caught:
        decided(check, file)
    assert caught.value.number == ErrorCode.ER_MASTER_FATAL_ERROR_READING_BINLOG
    return caught.value.what


def test_a_boundary_is_accepted() -> None:
    assert decided(PositionCheck(Verdict.BOUNDARY, 1015, 1015, None)) is Decision.ACCEPT


def test_what_may_still_come_is_held() -> None:
    assert decided(PositionCheck(Verdict.FUTURE, 900, None, None)) is Decision.HOLD


def test_a_resume_inside_a_transaction_is_accepted() -> None:
    check = PositionCheck(Verdict.INSIDE_TRANSACTION, 730, 1177, (730, 1177))
    assert decided(check, may_resume=True) is Decision.ACCEPT


def test_a_resume_inside_an_event_is_not() -> None:
    check = PositionCheck(Verdict.INSIDE_EVENT, 730, 1177, (730, 1177))
    with pytest.raises(PositionRefused):
        decided(check, may_resume=True)


def test_inside_a_transaction_names_place_range_and_neighbours_first() -> None:
    text = text_of(PositionCheck(Verdict.INSIDE_TRANSACTION, 730, 1177, (730, 1177)))
    assert text.startswith(
        "mysql-bin.000042:1015 is inside the transaction 730-1177; nearest valid positions: before 730, after 1177"
    )


def test_inside_an_event_names_its_transaction() -> None:
    text = text_of(PositionCheck(Verdict.INSIDE_EVENT, 730, 1177, (730, 1177)))
    assert text.startswith("mysql-bin.000042:1015 is inside an event, in the transaction 730-1177; nearest")


def test_a_transaction_that_a_crash_cut_is_named_as_such() -> None:
    assert "crash" in text_of(PositionCheck(Verdict.INSIDE_TRANSACTION, 730, 2000, (730, None)))


def test_past_the_end_names_the_end() -> None:
    assert "before 900, after none" in text_of(PositionCheck(Verdict.PAST_END, 900, None, None))


def test_an_unknown_file_names_what_is_held() -> None:
    assert "holds mysql-bin.000001 to mysql-bin.000042" in text_of(
        PositionCheck(Verdict.UNKNOWN_FILE, None, None, None)
    )


@pytest.mark.parametrize("verdict", [v for v in Verdict if v not in (Verdict.BOUNDARY, Verdict.FUTURE)])
@pytest.mark.parametrize("file", [FILE, LONG])
def test_every_refusal_fits_the_error_field(verdict: Verdict, file: str) -> None:
    check = PositionCheck(verdict, 2**63, 2**63, (2**63, 2**63))
    assert len(text_of(check, file).encode()) <= MAX_TEXT_BYTES


def test_the_retryable_error_fits_the_error_field() -> None:
    error = not_here_yet(LONG, 2**63, end=f"{LONG}:{2**63}"[:300], waited_s=86400.0)
    assert error.number == ErrorCode.ER_UNKNOWN_ERROR
    assert len(error.what.encode()) <= MAX_TEXT_BYTES


@pytest.mark.parametrize("offset", [0, 3, 2**32 - 1])
def test_impossible_offsets_are_refused(offset: int) -> None:
    with pytest.raises(PositionRefused, match=f"{FILE}:{offset} is no valid position"):
        check_request(request(offset=offset), {})


@pytest.mark.parametrize("name", ["a/b.000001", "..", "x", "\x00.000001", "../x.000001", LONG + "/"])
def test_names_that_are_no_binlogs_are_refused(name: str) -> None:
    with pytest.raises(PositionRefused, match="not a binlog file name") as caught:
        check_request(request(name), {})
    assert len(caught.value.what.encode()) <= MAX_TEXT_BYTES


def test_an_empty_name_means_the_first_file() -> None:
    check_request(request(""), {})


def test_mariadb_by_gtid_is_refused_by_name() -> None:
    with pytest.raises(PositionRefused, match="MASTER_USE_GTID=no"):
        check_request(request(), {"slave_connect_state": ""})


@pytest.mark.parametrize("value", [None, 0, 3, "x"])
def test_only_mariadb_10_reads_a_mariadb_stream(value: int | str | None) -> None:
    with pytest.raises(PositionRefused, match="only MariaDB"):
        check_flavour("mariadb", {"mariadb_slave_capability": value})


@pytest.mark.parametrize(("flavour", "value"), [("mariadb", 4), ("mariadb", "4"), ("mysql", None), ("mysql", 4)])
def test_who_can_read_a_stream_gets_it(flavour: str, value: int | str | None) -> None:
    check_flavour(flavour, {"mariadb_slave_capability": value})


def test_who_knows_no_checksums_is_refused_where_there_are_some() -> None:
    with pytest.raises(PositionRefused, match="Slave can not handle"):
        check_checksum(FILE, 1, {})


@pytest.mark.parametrize(("checksum", "value"), [(0, None), (1, "NONE"), (1, "CRC32")])
def test_who_knows_checksums_or_needs_none_is_served(checksum: int, value: str | None) -> None:
    check_checksum(FILE, checksum, {"source_binlog_checksum": value})
