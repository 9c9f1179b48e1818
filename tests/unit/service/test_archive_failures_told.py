"""A failure of the catalog is announced although binlogs failed before, and one full disk is announced once."""

import errno
from pathlib import Path

import pytest
import structlog

import relay.service.app
from relay.archive.storage.archive_errors import ArchiveWriteError
from relay.archive.storage.files import CATALOG_NAME
from relay.config import load_config


def failure(file: str) -> ArchiveWriteError:
    return ArchiveWriteError("no room", file=file, offset=None, errno=errno.ENOSPC)


@pytest.mark.parametrize(("later_s", "told"), [(1.0, [CATALOG_NAME]), (100.0, [CATALOG_NAME, "mysql-bin.000001"])])
def test_a_binlog_and_the_catalog_are_announced_each_unless_it_is_at_one_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later_s: float, told: list[str]
) -> None:
    path = tmp_path / "relay.toml"
    path.write_text('[source]\nkind = "directory"\npath = "x"\n[archive]\ndir = "held"\n')
    running = relay.service.app.Relay(load_config(path), path)
    now = 1000.0
    monkeypatch.setattr("relay.service.app.time.monotonic", lambda: now)
    with structlog.testing.capture_logs() as logs:
        running._archive_failed(failure(CATALOG_NAME))
        running._archive_failed(failure(CATALOG_NAME))
        now += later_s
        running._archive_failed(failure("mysql-bin.000001"))
        running._archive_failed(failure("mysql-bin.000001"))
    assert [line["file"] for line in logs if line["event"] == "archive_write_failed"] == told
