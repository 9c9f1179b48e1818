"""A relay that moves its binlogs, as a DBA sees it: by SQL, commands and HTTP."""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

from tests.support.chain import wait_until
from tests.support.free_port import free_port
from tests.support.generation_filling import A, mysql_series
from tests.support.relay_process import REPLICA_PASSWORD, REPLICA_USER, RelayProcess

KEY = bytes(range(32)).hex()


def command(relay: RelayProcess, *words: str, code: int = 0) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "relay", "archive", *words, "--json", "--config", str(relay.config)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_files_move_by_the_rules_and_a_dba_sees_where_they_are(tmp_path: Path) -> None:
    source, bucket = tmp_path / "source", tmp_path / "bucket"
    source.mkdir()
    (tmp_path / "key").write_text(KEY)
    series = mysql_series(1, *(f"{A}:{first}-{first + 199}" for first in range(1, 1001, 200)))
    for name, data in series:
        (source / name).write_bytes(data)
    port = free_port()
    sections = {
        "[account]": {"user": REPLICA_USER, "password": REPLICA_PASSWORD, "admin": True},
        "http": {"port": port, "enabled": True},
        "archive.bucket": {"url": f"file://{bucket}"},
        "archive.encryption": {"active": "a"},
        "[archive.encryption.key]": {"id": "a", "file": "key"},
        "archive.tiers": {"hot_bytes": "1KiB", "cold_bytes": "20KiB"},
    }
    with RelayProcess(tmp_path, source, port=free_port(), sections=sections) as relay:

        def told() -> dict[str, Any]:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/tiers") as answer:
                return dict(json.load(answer))

        def files() -> dict[str, int]:
            return {one["tier"]: one["files"] for one in told()["tiers"]}

        wait_until(lambda: files() == {"hot": 1, "cold": 2, "object": 2}, "the rules are met", 20)
        listed = command(relay, "list")
        assert [line["file"] for line in listed if line["tier"] == "object"] == [
            line["stored_as"].removesuffix(".zst.enc") for line in listed if line["tier"] == "object"
        ]
        assert {line["key"] for line in listed if line["tier"] != "hot"} == {"a"}
        assert [row[:2] for row in relay.sql("SHOW BINARY LOGS")] == [(name, len(data)) for name, data in series]
        assert command(relay, "verify", "--deep") == []
        assert told()["waiting_files"] == 0 and told()["moved"][0] == {"tier": "cold", "files": 4, "bytes": 204_724}
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            assert b"binlog_relay_bucket_failing 0.0" in answer.read()

        relay.sql(f"PURGE BINARY LOGS TO '{series[-1][0]}'")
        wait_until(lambda: not list(bucket.rglob("mysql-bin.*")), "the bucket has none of the purged files", 20)
        wait_until(lambda: not list(relay.archive.glob("*.gone")), "and it is noted", 20)
        assert [line["tier"] for line in command(relay, "list")] == ["hot"]
        assert KEY not in relay.log_tail()
