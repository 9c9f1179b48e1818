"""What the feed commands answer where lake or settings are of no use: a sentence, and an exit code that says whose fault it is."""

from pathlib import Path
from typing import Any

import pytest

from protocol.errors import ExitCode, RelayError

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install '.[feed]'")

from relay.commands.outcome import CommandFailed
from relay.feed.command.feed_command import loaded_feed, report, status
from tests.support.binlog_builder import BinlogBuilder
from tests.support.feed_lake import SmallFeed


@pytest.mark.parametrize("command", ["status", "report"])
def test_a_lake_that_is_damaged_is_told_as_that(tmp_path: Path, command: str) -> None:
    archive = tmp_path / "archive"
    archive.mkdir()
    (archive / "mysql-bin.000001").write_bytes(BinlogBuilder("mysql").transaction(20).data)
    feed = SmallFeed(tmp_path / "feed", archive, "shop")
    assert feed.run() is None
    (tmp_path / "feed/lake/_feed/_delta_log/00000000000000000000.json").write_text("garbage")
    with pytest.raises(CommandFailed, match="The lake did not do it") as told:
        if command == "status":
            status(feed.config, as_json=False)
        else:
            report(feed.config, tmp_path / "page.html", 7)
    assert told.value.exit_code == ExitCode.SOURCE_UNREACHABLE
    assert "\n" not in str(told.value)
    assert f"DeltaError: {tmp_path}/feed/lake/_feed: Kernel error: Json error: Encountered unexpected 'g'" in str(
        told.value
    )
    assert "unknown" not in str(told.value)


@pytest.mark.parametrize(
    "given",
    [
        {"storage": {"secret_access_key_env": "NO_SUCH_VARIABLE"}},
        {"format": "iceberg", "target": "s3://lake/shop"},
        {"format": "iceberg", "catalog": "nosuch://feed:hidden@db/lake"},
        {"format": "iceberg", "catalog": "mysql://feed:hidden@db:port/lake"},
        {"format": "iceberg", "catalog": "oracle://feed:hidden@db/lake"},
    ],
    ids=["a variable that is not set", "a bucket without a catalog", "a scheme", "a port", "a driver"],
)
def test_settings_that_no_lake_can_be_opened_by_are_wrong_use_without_a_secret_in_the_sentence(
    tmp_path: Path, given: dict[str, Any]
) -> None:
    pytest.importorskip("pyiceberg", reason="pyiceberg is not installed: pip install '.[feed]'")
    feed = SmallFeed(tmp_path, tmp_path / "archive", "shop", **given)
    with pytest.raises(RelayError) as told:
        loaded_feed(feed.config)
    assert told.value.exit_code == ExitCode.WRONG_USE
    assert "hidden" not in str(told.value)
