"""What the doctor makes of figures: those that no server here can be made to give."""

import datetime
from pathlib import Path

import pytest

from relay.commands.outcome import CommandFailed
from relay.doctor.certificate_judgement import shown_certificate_line
from relay.doctor.doctor_command import replica_to_ask, shown_line, summary
from relay.doctor.doctor_line import DoctorLine, is_worse, printable
from relay.doctor.machine_judgement import archive_rate, relay_pid, space_line, sync_verdict
from relay.doctor.server_answers import clock_difference, privileges_in
from relay.doctor.source_judgement import shown_bytes, version_number
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


def test_versions_and_sizes_are_read_as_people_write_them() -> None:
    assert version_number("10.11.6-MariaDB-log") == (10, 11)
    assert version_number("strange") == (0, 0)
    assert [shown_bytes(count) for count in (0, 2048, 3 << 40)] == ["0 bytes", "2.0 KiB", "3.0 TiB"]


@pytest.mark.parametrize("text", ["", "host", "host:1,user", "host:x,user,file", "host:99999,user,file", "h:1,,f"])
def test_a_replica_that_is_not_named_whole_is_refused(text: str) -> None:
    with pytest.raises(CommandFailed):
        replica_to_ask(text)


def test_a_replica_may_have_an_address_of_ipv6() -> None:
    asked = replica_to_ask("[::1]:3310,me,/x")
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
