"""Packed binlogs, encrypted or not, on the disk and in a bucket: planning and reading them gives what the plain ones give."""

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[audit]'")

from relay.binlog_tables.plan.packed_store import store_of
from relay.binlog_tables.plan.read_finding import StorageSilent
from relay.object_store import trying
from relay.object_store.object_store import ObjectStore
from relay.packed.key_ring import KeyRing
from relay.packed_reads.archive_layer import note_tiers
from tests.audit.conftest import BUCKET_ENVIRONMENT, BUCKET_PORT
from tests.audit.job_runs import run
from tests.audit.test_splits import rows, splits_of
from tests.support.archive_filling import fill
from tests.support.binlog_builder import INSIDE, BinlogBuilder
from tests.support.packed_archive import pack_away
from tests.support.s3_server import ACCESS_KEY, BUCKET, SECRET_KEY, S3Server, need_rclone
from tests.support.storage_faults import Fault, StorageFaults

FIRST, SECOND, THIRD = (f"mysql-bin.00000{number}" for number in (1, 2, 3))
KEYS = KeyRing({"one": bytes.fromhex("ab" * 32)}, "one")
SPLIT = 256 << 10


def binlog(seed: int) -> bytes:
    """About 700 kB that hardly get smaller."""
    rng = random.Random(seed)
    built = BinlogBuilder()
    for _ in range(120):
        built.begin().query(rng.randbytes(rng.randrange(100, 6000)).hex(), INSIDE).xid()
    return bytes(built.data)


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    need_rclone()
    with S3Server(tmp_path_factory.mktemp("storage") / "s3", BUCKET_PORT) as server:
        yield server


@pytest.fixture
async def plain(tmp_path: Path) -> Path:
    """An archive of three files, none packed."""
    place = tmp_path / "plain"
    await fill(place, *((name, binlog(seed)) for seed, name in enumerate((FIRST, SECOND, THIRD))))
    return place


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch, key_file: Path) -> None:
    assert key_file.exists()
    for name, value in BUCKET_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    assert os.environ["AWS_ACCESS_KEY_ID"] == ACCESS_KEY and os.environ["AWS_SECRET_ACCESS_KEY"] == SECRET_KEY


def packed_here(plain: Path, *, encrypted: bool = False) -> Path:
    place = plain.with_name("packed")
    shutil.copytree(plain, place)
    for name in (FIRST, SECOND):
        pack_away(place / name, place, keys=KEYS if encrypted else None)
    return place


def in_bucket(plain: Path, storage: S3Server) -> str:
    """Two packed, one of them encrypted, and a plain one, with their indexes: as a copy of an archive has them."""
    place = plain.with_name("sent")
    shutil.copytree(plain, place)
    folder = plain.parent.name
    store = ObjectStore(storage.options(folder))
    pack_away(place / FIRST, place, store, KEYS)
    pack_away(place / SECOND, place, store)
    for name in (THIRD, *(f"{name}.idx" for name in (FIRST, SECOND, THIRD))):
        store.put_file(name, place / name)
    return f"s3://{BUCKET}/{folder}"


@pytest.mark.usefixtures("settings")
@pytest.mark.parametrize("encrypted", [False, True])
def test_packed_files_of_an_archive_are_read_as_plain_ones(plain: Path, encrypted: bool) -> None:
    packed = packed_here(plain, encrypted=encrypted)
    there = splits_of(packed, SPLIT, store_of(str(packed)))
    assert len(there) > 6
    assert rows(there, "events") == rows(splits_of(plain, SPLIT), "events")


@pytest.mark.usefixtures("settings")
def test_a_directory_of_packed_files_and_one_of_them_are_read_without_an_archive(plain: Path, tmp_path: Path) -> None:
    packed = packed_here(plain)
    loose = tmp_path / "loose"
    loose.mkdir()
    for name in (f"{FIRST}.zst", f"{SECOND}.zst", THIRD):
        shutil.copy(packed / name, loose)
    store = store_of(str(loose))
    wanted = rows(splits_of(plain, SPLIT), "events")
    assert rows(splits_of(loose, SPLIT, store), "events") == wanted
    assert rows(splits_of(f"{loose}/*.0*", SPLIT, store), "events") == wanted
    one = rows(splits_of(loose / f"{SECOND}.zst", SPLIT, store), "events")
    assert one == [row for row in wanted if row["file"] == SECOND]


@pytest.mark.usefixtures("settings")
def test_a_bucket_is_read_as_a_directory(plain: Path, storage: S3Server) -> None:
    url = in_bucket(plain, storage)
    there = splits_of(url, SPLIT, store_of(url))
    assert len(there) > 6
    assert rows(there, "events") == rows(splits_of(plain, SPLIT), "events")


@pytest.mark.usefixtures("settings")
def test_a_file_that_moves_between_planning_and_reading_is_read_where_it_is(plain: Path, storage: S3Server) -> None:
    whole = rows(splits_of(plain, SPLIT), "events")
    bucket = storage.options("moving")
    note_tiers(plain, bucket, ())
    planned = splits_of(plain, SPLIT, store_of(str(plain)))
    pack_away(plain / FIRST, plain)
    pack_away(plain / SECOND, plain, ObjectStore(bucket))
    assert not (plain / FIRST).exists() and not (plain / SECOND).exists()
    assert rows(planned, "events") == whole


@pytest.mark.usefixtures("settings")
def test_a_key_that_is_not_there_is_a_finding_that_names_it(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = packed_here(plain, encrypted=True)
    monkeypatch.setenv("BINLOG_RELAY_KEYS", "")
    store = store_of(str(packed))
    found = rows(splits_of(packed / f"{FIRST}.zst.enc", SPLIT, store), "findings")
    assert [row["finding"] for row in found] == ["file_unreadable"]
    assert "'one'" in str(found[0])


@pytest.mark.usefixtures("settings")
@pytest.mark.parametrize("fault", [Fault.THROTTLED, Fault.RESET, Fault.CUT])
def test_a_bucket_that_gives_no_answer_is_an_error_and_no_finding_wherever_the_read_is(
    plain: Path, storage: S3Server, monkeypatch: pytest.MonkeyPatch, fault: Fault
) -> None:
    url = in_bucket(plain, storage)
    monkeypatch.setattr(trying, "_FIRST_PAUSE_S", 0.01)
    with StorageFaults(storage.port) as between:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{between.port}")
        whole = rows(splits_of(plain, SPLIT), "events")
        for _ in range(2):  # what is kept of objects by then is not asked for again
            before = len(between.requests)
            assert rows(splits_of(url, SPLIT, store_of(url)), "events") == whole
        methods = [one.method for one in between.requests[before:]]
        asked = len(methods) - methods[::-1].index("GET")  # what has no body is not cut
        for passed in range(0, asked, max(asked // 6, 1)):  # the requests before pass, all that follow do not
            between.order_behind(passed, fault)
            try:
                found = rows(splits_of(url, SPLIT, store_of(url)), "events")
            except StorageSilent as error:
                assert "the read fails, and is to be done again" in str(error)
            else:
                raise AssertionError(
                    f"behind {passed} of {asked}: {[one['finding_text'] for one in found if one['finding']]}"
                )
            between.forgive()
        assert rows(splits_of(url, SPLIT, store_of(url)), "events") == whole


@pytest.mark.usefixtures("settings")
def test_spark_reads_a_bucket_with_packed_and_encrypted_files(spark: Any, plain: Path, storage: S3Server) -> None:
    columns = ("file", "position", "type", "boundary")
    reader = spark.read.format("binlog").option("level", "events").option("columns", ",".join(columns))
    frame = reader.option("splitBytes", str(2 * SPLIT)).load(in_bucket(plain, storage))
    there = sorted(map(tuple, frame.collect()))
    wanted = [tuple(row[name] for name in columns) for row in rows(splits_of(plain), "events", *columns)]
    assert there == sorted(wanted) and len(there) > 1000


@pytest.mark.usefixtures("settings")
def test_an_audit_finds_in_a_bucket_what_it_finds_in_plain_files(
    spark: Any, plain: Path, storage: S3Server, tmp_path: Path
) -> None:
    there, wanted = (run(spark, "boundaries", place, tmp_path) for place in (in_bucket(plain, storage), plain))
    assert there.names == wanted.names
    assert there.figures == wanted.figures
    assert int(str(there.figures["events"])) > 1000
