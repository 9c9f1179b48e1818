"""`binlog-relay audit`: what is refused at once, and how; nothing here starts Spark."""

import contextlib
import errno
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from protocol.errors import ExitCode, RelayError

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[audit]'")

from relay.audit import audit_command as command
from relay.audit.jobs import JOBS
from relay.audit.runner.run_job import load_job
from relay.commands.outcome import CommandFailed
from tests.support.binlog_builder import BinlogBuilder


@pytest.fixture
def binlog(tmp_path: Path) -> str:
    path = tmp_path / "bin.000001"
    path.write_bytes(BinlogBuilder().transaction().data)
    return str(path)


def refusal(*arguments: object, **options: object) -> str:
    with pytest.raises(RelayError) as failure:
        command.audit(command.AuditRequest(*arguments, **options))  # type: ignore[arg-type]
    assert failure.value.exit_code == ExitCode.WRONG_USE
    return str(failure.value)


def test_every_audit_that_is_listed_is_there() -> None:
    for name in JOBS:
        job = load_job(name)
        assert (job.name, bool(job.title), bool(job.what)) == (name, True, True)
    assert all(name in command.listed_jobs() for name in JOBS)


def test_what_cannot_be_is_refused_before_spark_starts(
    binlog: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "check_installed", lambda: None)
    out = tmp_path / "out"
    assert "There are:\n  boundaries" in refusal("nothing", binlog, out)
    assert "--tables cannot narrow it" in refusal("boundaries", binlog, out, tables=("a.b",))
    assert "--tables names no table" in refusal("tables", binlog, out, tables=("",))
    assert "there is nothing at /nowhere" in refusal("boundaries", "/nowhere", out)
    assert "write a time such as" in refusal("boundaries", binlog, out, since="yesterday")
    assert "no binlog has such a time" in refusal("boundaries", binlog, out, since="99999999999999")
    assert "nothing lies between" in refusal("boundaries", binlog, out, since="2026-01-02", until="2026-01-02")
    assert "it takes no --for" in refusal("boundaries", binlog, out, target="mysql-9.7")
    assert "mysql-8.4, mysql-9.7" in refusal("readiness", binlog, out, target="mysql-4.1")
    assert "--table shop.orders --key 42 name it" in refusal("history", binlog, out, table="shop.orders")
    assert "it takes a table with its database" in refusal("history", binlog, out, table="orders", key="42")
    assert "--table and --key are for history" in refusal("all", binlog, out, table="shop.orders", key="42")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("")
    assert "holds other things" in refusal("boundaries", binlog, tmp_path / "other", replace=True)
    assert not out.exists()


def test_all_audits_take_the_options_that_one_of_them_takes(binlog: str, tmp_path: Path) -> None:
    request = command.AuditRequest("all", binlog, tmp_path / "out", tables=("a.b",), target="mysql-9.7")
    jobs, options = command.asked_for(request)
    assert [job.name for job in jobs] == list(JOBS)
    assert (options.tables, options.target, options.row) == (("a.b",), "mysql-9.7", None)


def test_a_disk_that_is_full_is_no_finding(binlog: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "check_installed", lambda: None)

    @contextlib.contextmanager
    def session(*arguments: object, **options: object) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(sparkContext=None)

    def full(*arguments: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "/out/report.html")

    monkeypatch.setattr("relay.audit.runner.spark_command.command_session", session)
    monkeypatch.setattr("relay.audit.runner.run_job.run_job", full)
    told = refusal("boundaries", binlog, tmp_path / "out")
    assert told.startswith("The audit was not written: [Errno 28] No space left on device: '/out/report.html'.")


def test_an_archive_whose_catalog_is_damaged_is_called_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "check_installed", lambda: None)
    (tmp_path / "catalog.sqlite").write_bytes(b"SQLite format 3\0" + b"x" * 4096)
    with pytest.raises(CommandFailed, match="archive rebuild") as failure:
        command.audit(command.AuditRequest("boundaries", str(tmp_path), tmp_path / "out"))
    assert failure.value.exit_code == 4


def test_a_missing_part_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "openjdk-17-jre-headless" in _not_installed()
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    assert f"{java} is Java 11; Spark needs 17 or later" in _not_installed()
    java.write_text("#!/bin/sh\necho 'java version \"1.8.0_392\"' >&2\n")
    assert "is Java 8" in _not_installed()
    java.write_text("#!/bin/sh\necho 'openjdk version \"21\" 2023-09-19' >&2\n")
    command.check_installed()
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    assert "Check JAVA_HOME" in _not_installed()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "pip install 'binlog-relay[audit]'" in _not_installed()


def _not_installed() -> str:
    with pytest.raises(CommandFailed) as failure:
        command.check_installed()
    assert failure.value.exit_code == ExitCode.WRONG_USE
    return str(failure.value)
