"""A relay that copies its archive into a real S3 server, and an archive restored from there."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from relay.bucket_copy.mirror_parts import part_of
from relay.object_store.archive_object import ARCHIVE_KEY, read_archive_object
from relay.object_store.object_store import ObjectStore
from tests.support.chain import wait_until
from tests.support.relay_process import Endpoint, RelayProcess
from tests.support.s3_server import S3Server

INTERVAL_S = 0.2


def mirror_sections(store: S3Server, prefix: str = "relay-a") -> dict[str, dict[str, Any]]:
    """Return sections of relay.toml."""
    options = store.options(prefix)
    return {
        "archive.bucket": {
            "url": options.url,
            "endpoint": options.endpoint,
            "region": options.region,
            "access_key_id": options.access_key_id,
            "secret_key_file": options.secret_key_file,
        },
        "archive.mirror": {"interval_s": INTERVAL_S},
        # Nobody knows any more what was being sent to whom.
        "listen": {"inside_transactions": "all", "position_wait_s": 1.0},
    }


def mirrored_relay(
    directory: Path, source: Endpoint, store: S3Server, port: int, *, more: dict[str, dict[str, Any]] | None = None
) -> RelayProcess:
    """Run such a relay. `more` are sections of relay.toml."""
    return RelayProcess(directory, source, port=port, sections={**mirror_sections(store), **(more or {})})


def lose_disk(relay: RelayProcess) -> None:
    """Run kill -9, and remove the archive."""
    relay.kill()
    shutil.rmtree(relay.archive.parent)


def restore(relay: RelayProcess, *words: str, store: S3Server | None = None) -> dict[str, Any]:
    """Run `archive restore` and return its output. With `store` the bucket has no writer for a minute: the lost relay is dead."""
    if store is not None:
        bucket = ObjectStore(store.options("relay-a"))
        about = read_archive_object(bucket)
        assert about is not None
        bucket.put_bytes(ARCHIVE_KEY, replace(about, time=0.0).encode())
    done = relay.command("archive", "restore", "--json", *words)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def objects(store: S3Server, prefix: str = "relay-a") -> list[str]:
    """Return keys in the bucket, without the prefix."""
    place = store.bucket_directory / prefix
    return sorted(str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()) if place.exists() else []


def whole_files(store: S3Server, prefix: str = "relay-a") -> int:
    """Return how many binlogs are in the bucket as a whole."""
    return sum(key.endswith(".place") for key in objects(store, prefix))


def copied_to(store: S3Server, file: str, prefix: str = "relay-a") -> int:
    """Return up to where the growing binlog is in the bucket, by the names of its parts."""
    parts = [part for key in objects(store, prefix) if (part := part_of(key)) is not None and part.file == file]
    return max((part.stop for part in parts), default=0)


def wait_copied(store: S3Server, file: str, offset: int, timeout_s: float = 20.0) -> None:
    """Wait until the bucket has the binlog up to there."""
    wait_until(
        lambda: copied_to(store, file) >= offset or f"{file}.place" in objects(store),
        f"{file} up to {offset} is in the bucket: {objects(store)}",
        timeout_s,
    )
