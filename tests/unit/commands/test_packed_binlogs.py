"""Commands read packed binlogs by their names, by the names that they had, and by URLs."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from relay.object_store.object_store import ObjectStore
from relay.packed.key_ring import KeyRing
from relay.packed_reads.named_binlog import bucket_url, open_binlog
from tests.support.archive_filling import fill
from tests.support.binlog_builder import BinlogBuilder
from tests.support.packed_archive import pack_away
from tests.support.s3_server import ACCESS_KEY, BUCKET, SECRET_KEY, S3Server, need_rclone

NAME = "mysql-bin.000001"
NEXT = "mysql-bin.000002"
KEYS = KeyRing({"one": bytes(range(32))}, "one")
Command = Any


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    need_rclone()
    with S3Server(tmp_path_factory.mktemp("storage") / "s3") as server:
        yield server


@pytest.fixture
async def archive(tmp_path: Path) -> Path:
    place = tmp_path / "archive" / "source"
    built = BinlogBuilder().transaction(2000, 90_000).ddl().transaction(70_000)
    await fill(place, (NAME, built.data), (NEXT, BinlogBuilder().transaction(20).data))
    return place


def config_of(archive: Path) -> Path:
    config = archive.parents[1] / "relay.toml"
    config.write_text(f'[source]\nkind = "directory"\npath = "x"\n[archive]\ndir = "{archive.parent}"\n')
    return config


@pytest.mark.parametrize("ways", [["events"], ["events", "--json"], ["positions"], ["positions", "--all"]])
def test_a_packed_file_and_the_name_that_it_had_give_what_the_plain_one_gave(
    command: Command, archive: Path, ways: list[str]
) -> None:
    plain = command(*ways, archive / NAME)
    assert plain.code == 0 and plain.out
    pack_away(archive / NAME, archive)
    for name in (NAME, f"{NAME}.zst"):
        result = command(*ways, archive / name)
        assert (result.code, result.out.replace(".zst", "")) == (0, plain.out)


def test_an_object_is_read_by_its_url(
    command: Command, archive: Path, storage: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plain = command("events", "--json", archive / NAME)
    key = tmp_path / "key"
    key.write_bytes(bytes(range(32)))
    pack_away(archive / NAME, archive, ObjectStore(storage.options("a")), KEYS)
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{storage.port}",
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    url = f"s3://{BUCKET}/a/{NAME}.zst.enc"
    missing = command("events", "--json", url)
    assert (missing.code, "'one'" in missing.err) == (2, True)
    monkeypatch.setenv("BINLOG_RELAY_KEYS", f"one={key}")
    assert command("events", "--json", url).out.count("\n") == plain.out.count("\n") > 5
    gone = command("events", f"s3://{BUCKET}/a/nothing.000001")
    assert (gone.code, "there is no such object" in gone.err) == (2, True)


def test_a_url_that_went_through_a_path_is_one_again() -> None:
    assert bucket_url(str(Path("s3://binlogs/a/b.000001.zst"))) == "s3://binlogs/a/b.000001.zst"
    assert bucket_url("gs:/b/c") == "gs://b/c"
    assert bucket_url("archive/s3/b.000001") is None


def test_archive_cat_writes_the_bytes_that_were_received(
    capfdbinary: pytest.CaptureFixture[bytes], archive: Path
) -> None:
    from relay.cli.command_line import app

    wanted = (archive / NAME).read_bytes()
    pack_away(archive / NAME, archive)
    with pytest.raises(SystemExit) as ended:
        app(["archive", "cat", NAME, "--config", str(config_of(archive))])
    assert ended.value.code == 0
    assert capfdbinary.readouterr().out == wanted


def test_archive_cat_of_a_name_that_is_not_held_says_so(command: Command, archive: Path) -> None:
    result = command("archive", "cat", "mysql-bin.000009", "--config", config_of(archive))
    assert (result.code, "does not hold mysql-bin.000009" in result.err) == (2, True)


def test_a_plain_file_of_a_directory_that_is_no_archive_is_read(archive: Path, tmp_path: Path) -> None:
    shutil.copy(archive / NAME, tmp_path / NAME)
    opened = open_binlog(str(tmp_path / NAME))
    assert opened.size == (archive / NAME).stat().st_size
    opened.close()
