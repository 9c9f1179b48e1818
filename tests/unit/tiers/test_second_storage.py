"""The same moves with an S3 server that others wrote: moto's."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from relay.archive.archive import Archive
from relay.object_store.object_errors import ObjectMissing, StoreRefused
from relay.object_store.object_store import ObjectStore
from relay.object_store.store_options import StoreOptions
from relay.packed.packing import PackOptions
from relay.tiers.tier_mover import TierMover
from relay.tiers.tier_rules import TierRules
from tests.support.moto_server import BUCKET, moto_server
from tests.support.tier_archive import RING, check_bucket, check_whole, fill_archive


@pytest.fixture
def options(monkeypatch: pytest.MonkeyPatch) -> Iterator[StoreOptions]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    with moto_server() as url:
        yield StoreOptions(f"s3://{BUCKET}/relay", endpoint=url, region="us-east-1")


async def test_files_go_there_in_parts_are_read_in_ranges_and_are_removed(
    options: StoreOptions, tmp_path: Path
) -> None:
    store = ObjectStore(options)
    (tmp_path / "large").write_bytes(bytes(range(256)) * 80_000)
    store.put_file("large", tmp_path / "large")
    assert store.get("large") == (tmp_path / "large").read_bytes()
    assert store.get_tail("large", 2) == (b"\xfe\xff", 20_480_000)
    store.delete(["large", "never"])
    with pytest.raises(ObjectMissing):
        store.get("large")
    with pytest.raises(StoreRefused, match="there is no such bucket"):
        ObjectStore(StoreOptions("s3://elsewhere/x", endpoint=options.endpoint, region="us-east-1")).get("x")

    wanted = await fill_archive(tmp_path / "archive")
    archive = await Archive.open(tmp_path / "archive")
    rules = TierRules(hot_bytes=1, cold_bytes=1)
    mover = TierMover(archive, rules, PackOptions(level=1, frame_bytes=8192), keys=RING, store=store)
    await mover.run_once()
    assert [str(file.tier) for file in archive.current.files] == ["object"] * 4 + ["hot"]
    check_whole(archive, wanted, store)
    check_bucket(archive, store)
    await archive.current.purge([file.name for file in archive.current.files[:-1]], "by a test")
    await mover.run_once()
    await mover.close()
    await archive.close()
    assert list(store.list()) == []
