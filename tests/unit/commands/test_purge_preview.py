"""`archive purge --dry-run` and what check-config says of room."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from relay.archive.storage.files import FileLayer
from relay.cli.command_line import app
from relay.commands.outcome import CommandFailed
from relay.retention.known_replicas import KnownReplica, KnownReplicas
from relay.retention.replicas_file import write_known_replicas
from tests.support.archive_filling import fill
from tests.unit.archive.test_purge import NAMES, binlogs


async def configured(tmp_path: Path, *retention: str) -> Path:
    """An archive of five small files, a configuration, and a replica that is away and has received the first two."""
    archive = tmp_path / "archive" / "source"
    archive.mkdir(parents=True)
    await fill(archive, *binlogs())
    replica = KnownReplica(
        view="",
        server_id=101,
        server_uuid="",
        user="r",
        address="192.0.2.1",
        generation=1,
        file=NAMES[2],
        offset=200,
        arrived_generation=1,
        arrived_file=NAMES[2],
        absent_s=7300.0,
    )
    write_known_replicas(FileLayer(), archive, KnownReplicas([replica]).values())
    config = tmp_path / "relay.toml"
    lines = [
        '[source]\nhost = "db"\nuser = "r"\npassword = "p"\nserver_id = 7',
        f'[archive]\ndir = "{tmp_path / "archive"}"',
        *(["[retention]", *retention] if retention else []),
        '[[account]]\nuser = "r"\npassword = "p"',
    ]
    config.write_text("\n".join(lines) + "\n")
    config.chmod(0o600)
    return config


async def test_it_says_what_would_go_what_is_kept_and_for_whom_and_removes_nothing(tmp_path: Path) -> None:
    config = await configured(tmp_path, 'keep_bytes = "1KiB"')
    told = CliRunner().invoke(app, ["archive", "purge", "--dry-run", "--config", str(config)])
    assert told.exit_code == 0, told.output
    lines = told.output.splitlines()
    assert [line.split("\t")[1:2] + line.split("\t")[4:] for line in lines[:5]] == [
        [NAMES[0], "goes", 'keep_bytes = "1KiB"'],
        [NAMES[1], "goes", 'keep_bytes = "1KiB"'],
        *([name, "stays", "replica 101 ('r'@'192.0.2.1', away for 2 hours) needs it"] for name in NAMES[2:]),
    ]
    assert lines[5].startswith("2 of 5 files would go now") and lines[5].endswith("Nothing was removed.")
    assert lines[6].startswith('keep_bytes = "1KiB" cannot be kept in the archive: mysql-bin.000003 and what follows')
    assert sorted(path.name for path in (tmp_path / "archive" / "source").glob("mysql-bin.00000?")) == NAMES


async def test_for_machines_each_file_is_an_object(tmp_path: Path) -> None:
    config = await configured(tmp_path, 'keep_bytes = "1KiB"', "keep_for_replicas = false")
    told = CliRunner().invoke(app, ["archive", "purge", "--dry-run", "--json", "--config", str(config)])
    records = [json.loads(line) for line in told.output.splitlines()]
    assert [record["goes"] for record in records] == [True, True, True, True, False]
    assert (records[-1]["why"], records[0]["archive"], records[0]["generation"]) == ("it is the newest file", None, 1)


@pytest.mark.parametrize(
    ("retention", "options", "told"),
    [
        (['keep_bytes = "1KiB"'], [], "The running relay removes files"),
        ([], ["--dry-run"], "There is no [retention] in the configuration"),
    ],
)
async def test_what_it_does_not_do_is_said(tmp_path: Path, retention: list[str], options: list[str], told: str) -> None:
    config = await configured(tmp_path, *retention)
    refused = CliRunner().invoke(app, ["archive", "purge", *options, "--config", str(config)])
    assert isinstance(refused.exception, CommandFailed) and told in str(refused.exception)


async def test_known_replicas_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    config = await configured(tmp_path, 'keep_bytes = "1KiB"')
    (tmp_path / "archive" / "source" / "known-replicas.json").write_text("{")
    refused = CliRunner().invoke(app, ["archive", "purge", "--dry-run", "--config", str(config)])
    assert "known-replicas.json cannot be read" in str(refused.exception)


async def test_more_room_than_there_is_at_all_is_refused(tmp_path: Path) -> None:
    whole_gib = shutil.disk_usage(tmp_path).total >> 30
    config = await configured(tmp_path, f'min_free = "{whole_gib + 1}GiB"')
    refused = CliRunner().invoke(app, ["check-config", "--config", str(config)])
    assert "the whole file system of" in str(refused.exception)
