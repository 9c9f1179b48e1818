"""What the doctor makes of figures: those that no server here can be made to give."""

import datetime
import os
import socket
from itertools import takewhile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from protocol.printable import printable
from relay.commands.named_server import named_server
from relay.commands.outcome import CommandFailed
from relay.config import Config
from relay.doctor.certificate_checks import shown_certificate_line
from relay.doctor.doctor_command import shown_line, summary
from relay.doctor.doctor_line import DoctorLine, is_worse
from relay.doctor.machine_checks import archive_rate, relay_pid, space_line, sync_verdict
from relay.doctor.process_sockets import process_sockets
from relay.doctor.retention_checks import DiskRoom, retention_lines
from relay.doctor.server_answers import ServerAnswers, clock_difference, privileges_in
from relay.doctor.source_checks import source_lines
from relay.process.shown_amounts import shown_bytes
from tests.support.certificates import Authority

DAY_S = 86_400
GIB = 1 << 30


@pytest.mark.parametrize(
    ("rate_a_day", "level", "days"),
    [(60 * GIB, "problem", "1.7 days"), (10 * GIB, "warning", "10.0 days"), (GIB, "ok", "100.0 days")],
)
def test_space_is_told_in_days_until_the_disk_is_full(rate_a_day: float, level: str, days: str) -> None:
    line = space_line("archive", 100 * GIB, rate_a_day / DAY_S, None)
    assert line.level == level and f"full in {days}" in line.what


def test_binlogs_that_do_not_fit_are_a_problem_before_they_are_fetched() -> None:
    line = space_line("archive", GIB, None, 2 * GIB)
    assert line.level == "problem" and "2.0 GiB" in line.what


def test_space_without_a_known_rate_is_said_and_is_no_fault() -> None:
    assert space_line("archive", GIB, None, None).level == "unknown"


@pytest.mark.parametrize("is_bounded", [False, True])
def test_a_disk_with_almost_no_room_is_a_problem_whatever_the_source_writes(is_bounded: bool) -> None:
    line = space_line("archive", 692 << 10, None, None, is_bounded=is_bounded)
    assert line.level == "problem" and "692.0 KiB free" in line.what and "PURGE BINARY LOGS" in line.cure


def test_a_slow_sync_is_a_warning() -> None:
    assert sync_verdict("archive", 0.001, 0.2).level == "ok"
    assert sync_verdict("archive", 0.06, 0.2).level == "warning"


def test_the_rate_is_that_of_the_last_week() -> None:
    now = 100 * DAY_S
    old = {"a.1": (10**12, 1, 2 * DAY_S)}
    new = {"a.2": (DAY_S, now - 2 * DAY_S, now - DAY_S), "a.3": (DAY_S, now - DAY_S, now)}
    assert archive_rate(old | new, now) == 1.0
    assert archive_rate(old, now) is None
    assert archive_rate({"a.1": (5, now - 10, now)}, now) is None  # minutes say nothing of a day


def test_a_clock_is_compared_with_the_middle_of_the_question() -> None:
    assert clock_difference(1005.0, 999.0, 1001.0) == (5.0, 1.0)


def test_privileges_are_those_on_all_databases_and_no_hash_is_one() -> None:
    held = privileges_in(
        [
            "GRANT REPLICATION SLAVE, Binlog Monitor ON *.* TO `r`@`%` IDENTIFIED BY PASSWORD '*AAAA'",
            "GRANT SELECT ON `shop`.* TO `r`@`%`",
            "GRANT `role`@`%` TO `r`@`%`",
        ]
    )
    assert held == {"REPLICATION SLAVE", "BINLOG MONITOR"}


def test_names_are_shown_without_escapes_on_one_line_and_cut() -> None:
    assert printable("a\x1b[2J\nb") == "a?[2J?b"
    assert len(printable("x" * 5000)) < 1000


def test_warnings_count_for_the_exit_code_with_strict_only() -> None:
    lines = [DoctorLine("a", "b", "warning", "c", "d"), DoctorLine("a", "b", "unknown", "c")]
    assert not is_worse(lines, strict=False) and is_worse(lines, strict=True)
    assert is_worse([*lines, DoctorLine("a", "b", "problem", "c", "d")], strict=False)
    assert shown_line(lines[0]).splitlines()[1].endswith("-> d")
    assert summary(lines) == "0 problems, 1 warning, 0 ok, 1 could not be asked."


def test_sizes_are_written_as_people_read_them() -> None:
    assert [shown_bytes(count) for count in (0, 2048, 3 << 40)] == ["0 bytes", "2.0 KiB", "3.0 TiB"]


@pytest.mark.parametrize("text", ["", "host", "host:1,user", "host:x,user,file", "host:99999,user,file", "h:1,,f"])
def test_a_replica_that_is_not_named_whole_is_refused(text: str) -> None:
    with pytest.raises(CommandFailed):
        named_server("--replica", text)


def test_a_replica_may_have_an_address_of_ipv6() -> None:
    asked = named_server("--replica", "[::1]:3310,me,/x")
    assert (asked.host, asked.port, asked.user, asked.password_file) == ("::1", 3310, "me", Path("/x"))


def test_a_certificate_that_ends_soon_is_a_warning(tmp_path: Path) -> None:
    made = Authority.make(tmp_path).server("soon", valid_days=5)
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    der = x509.load_pem_x509_certificate(made.certificate.read_bytes()).public_bytes(Encoding.DER)
    now = datetime.datetime.now(datetime.UTC)
    assert shown_certificate_line("x", der, now, checked=True).level == "warning"
    later = now + datetime.timedelta(days=6)
    assert shown_certificate_line("x", der, later, checked=True).level == "problem"
    assert shown_certificate_line("x", der, later, checked=False).level == "warning"
    assert shown_certificate_line("x", b"nothing", now, checked=True).level == "unknown"


def test_nobody_has_an_archive_that_is_not_there(tmp_path: Path) -> None:
    assert relay_pid(tmp_path) is None


def test_the_ports_of_a_process_are_seen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        seen = process_sockets(os.getpid())
        assert seen is not None
        assert server.getsockname()[1] in seen.listening
        assert client.getsockname()[1] in seen.connected - seen.listening
    assert process_sockets(2**22 + 1) is None


# ---- [retention] on a disk of 100 GiB, of which the archive has 20 and others have 10 -------------------------------------

ROOM = DiskRoom(size=100 * GIB, free=70 * GIB, held=20 * GIB)


def retained(rate_a_day: float | None, *, views: int = 0, **keys: object) -> dict[str, tuple[str, str]]:
    """Level and text of each line; there is a cure for each that is not ok."""
    config = Config.model_validate(
        {
            "source": {"kind": "directory", "path": "/binlogs"},
            "archive": {"dir": "/archive"},
            "retention": keys,
            "view": [{"name": f"v{number}"} for number in range(views)],
        }
    )
    lines = list(retention_lines(config, ROOM, None if rate_a_day is None else rate_a_day / DAY_S))
    assert all(line.cure for line in lines if line.level in ("warning", "problem"))
    return {line.check: (line.level, line.what) for line in lines}


def test_a_retention_that_fits_says_how_long_binlogs_are_kept() -> None:
    assert retained(GIB, keep_for="30d")["retention"] == ("ok", "the binlogs of about 30.0 days are kept, 30.0 GiB")
    assert "40.0 days" in retained(GIB, keep_bytes="40GiB")["retention"][1]
    assert "80.0 days" in retained(GIB, min_free="10GiB")["retention"][1]
    assert "40.0 days are kept, 80.0 GiB with 1 view" in retained(GIB, views=1, min_free="10GiB")["retention"][1]
    assert retained(None)["retention"][1].startswith("off")


@pytest.mark.parametrize(
    ("rate_a_day", "views", "keys", "check", "level", "told"),
    [
        (10 * GIB, 0, {"keep_for": "30d"}, "keep_for", "problem", "full after 9.0 days"),
        (10 * GIB, 0, {"keep_for": "30d", "min_free": "20GiB"}, "keep_for", "warning", "older than 7.0 days"),
        (2 * GIB, 2, {"keep_for": "30d"}, "keep_for", "problem", "180.0 GiB with 2 views"),
        (None, 0, {"min_free": "100GiB"}, "min_free", "problem", "the whole disk has 100.0 GiB"),
        (None, 0, {"min_free": "95GiB"}, "min_free", "problem", "90.0 GiB would be free"),
        (None, 0, {"keep_bytes": "95GiB"}, "keep_bytes", "problem", "full before anything goes"),
        (None, 1, {"keep_bytes": "50GiB"}, "keep_bytes", "problem", "with 1 view is 100.0 GiB"),
        (GIB, 0, {"keep_bytes": "85GiB", "min_free": "10GiB"}, "keep_bytes", "warning", "min_free removes before"),
        (10 * GIB, 0, {"min_free": "10GiB", "keep_at_least": "9d"}, "keep_at_least", "problem", "stops receiving"),
        (10 * GIB, 0, {"keep_bytes": "20GiB", "keep_at_least": "3d"}, "keep_at_least", "warning", "never kept to"),
        (20 * GIB, 0, {"keep_for": "1d"}, "forget_replicas_after", "warning", "within 4.5 days"),
        (None, 0, {"keep_for": "1d"}, "rate", "unknown", "not known yet"),
    ],
)  # fmt: skip
def test_a_retention_that_can_never_hold_is_said(
    rate_a_day: float | None, views: int, keys: dict[str, object], check: str, level: str, told: str
) -> None:
    lines = retained(rate_a_day, views=views, **keys)
    assert lines[check][0] == level and told in lines[check][1]


def test_a_limit_that_another_one_makes_good_is_no_problem() -> None:
    assert set(retained(GIB, keep_bytes="95GiB", keep_for="30d")) == {"retention"}
    assert set(retained(10 * GIB, keep_bytes="50GiB", keep_for="30d")) == {"retention"}
    assert "forget_replicas_after" not in retained(20 * GIB, keep_for="1d", keep_for_replicas=False)


def view_lines(*held: str, binlog_format: str = "MIXED") -> list[DoctorLine]:
    """What is said of a view of a MariaDB whose relay's account holds these privileges."""
    answers = ServerAnswers(
        "mariadb", "10.11.9-MariaDB", 1, None, None, None, {"binlog_format": binlog_format}, frozenset(held), None, 0.0,
        None, None, None, None,
    )  # fmt: skip
    settings: Any = SimpleNamespace(user="repl", record_schema=True)
    config: Any = SimpleNamespace(views=[SimpleNamespace(name="gtid", target="mysql-9.7")])
    own: Any = None
    lines = source_lines("source", settings, config, answers, own)
    return [line for line in takewhile(lambda line: line.check != "log_bin", lines) if line.check == "view gtid"]


def test_a_view_of_a_mariadb_that_writes_statements_wants_its_older_tables_to_be_seen() -> None:
    grants = ("REPLICATION SLAVE", "REPLICATION CLIENT", "REFERENCES")
    assert "GRANT PROCESS, TRIGGER ON *.* TO 'repl'" in view_lines(*grants)[1].cure
    assert len(view_lines(*grants, "PROCESS", "TRIGGER")) == 1
    assert len(view_lines(*grants, binlog_format="ROW")) == 1
