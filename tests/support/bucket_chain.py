"""A source and a relay whose every binlog but the newest is in a bucket, encrypted, with nothing of them in the relay's memory."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from deploy.servers import Server
from tests.support.chain import Chain, wait_until
from tests.support.s3_server import S3Server

GTIDS: Final = ("--gtid-mode=ON", "--enforce-gtid-consistency=ON")
FILES: Final = 5
ROWS: Final = 40


def bucket_sections(storage: S3Server, folder: str, key: Path) -> dict[str, dict[str, Any]]:
    """All goes to the bucket as soon as it is sealed, encrypted; nothing that was read stays in memory for long."""
    key.write_text("ab" * 32)
    options = storage.options(folder)
    bucket = {
        "url": options.url,
        "endpoint": options.endpoint,
        "region": options.region,
        "access_key_id": options.access_key_id,
        "secret_key_file": options.secret_key_file,
    }
    return {
        "archive.tiers": {"hot_bytes": "1KiB", "cold_bytes": "1KiB", "read_cache": "1MiB"},
        "archive.bucket": bucket,
        "archive.encryption": {"active": "first"},
        "[archive.encryption.key]": {"id": "first", "file": str(key)},
    }


def fill_files(source: Server, files: int = FILES) -> None:
    """Each file but the newest gets rows that hardly become smaller."""
    source.execute_many(["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, a LONGTEXT) ENGINE=InnoDB"])
    for file in range(files):
        rows = [f"INSERT INTO d.t VALUES ({file * ROWS + row}, HEX(RANDOM_BYTES(900)))" for row in range(ROWS)]
        if source.name != "mysql97":
            rows = [row.replace("HEX(RANDOM_BYTES(900))", "REPEAT(SHA2(RAND(), 256), 30)") for row in rows]
        source.execute_many([*rows, "FLUSH BINARY LOGS"])


def wait_moved(chain: Chain) -> None:
    """Until all but the newest are in the bucket, and nothing of them is here but what stands beside."""
    end = chain.wait_archived()

    def moved() -> list[str]:
        places = sorted(chain.relay.archive.glob("*.place"))
        return [path.stem for path in places if json.loads(path.read_text())["place"]["tier"] == "object"]

    wanted = len(chain.source.binlogs()) - 1
    wait_until(lambda: len(moved()) == wanted, "all but the newest are in the bucket", timeout_s=60)
    wait_until(lambda: not list(chain.relay.archive.glob("*.zst*")), "they are not here as well")
    assert not any((chain.relay.archive / name).exists() for name in moved()) and end.file not in moved()


def start_anew(chain: Chain) -> None:
    """What it had in memory is gone."""
    chain.relay.stop()
    chain.relay.start()


def add_and_compare(chain: Chain, replicas: Sequence[Server], number: int) -> None:
    """What is in the bucket, and what comes behind it."""
    chain.check_tables(replicas, ["d"])
    chain.source.sql(f"INSERT INTO d.t VALUES ({number}, 'behind')")
    chain.check_tables(replicas, ["d"])
