"""What feed.toml says wrongly is answered with what to write there."""

from pathlib import Path

import pytest

from relay.config.text.problems import ConfigError
from relay.feed.feed_config import load_feed_config

FEED = '[feed]\narchive = "/archive"\ntarget = "/lake"\n'
SOURCE = '[feed.source]\nhost = "db"\nuser = "feed"\n'


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (FEED + 'tablse = ["shop.*"]', "feed.tablse: there is no such key. Did you mean tables?"),
        (FEED + 'host = "db"', "feed.host: there is no such key here. It belongs to [feed.source]"),
        (
            FEED + "[feed.storage]\ninterval_s = 1",
            "feed.storage.interval_s: there is no such key here. It belongs to [feed]",
        ),
        (FEED + "[feed.storage]\nx = 1", "feed.storage.x: there is no such key. Known here: endpoint, region"),
        (
            FEED + '[feed.storage]\nendpoint = "http://minio:9000"',
            "feed.storage: `endpoint` is http://, and what is sent there anyone on the way can read. Set allow_http = true in",
        ),
        (FEED + "[feeds]", "feeds: there is no such key. Did you mean feed?"),
        (FEED + "batch_mb = 5000", "feed.batch_mb: 5000 is out of range. Write a number from 1 to 1024"),
        (FEED + "memory_mb = 3", "feed.memory_mb: 3 is out of range. Write a number from 64"),
        (FEED + "spool_above_kb = 0", "feed.spool_above_kb: 0 is out of range. Write a number from 1"),
        (FEED + SOURCE + "port = 99999", "feed.source.port: 99999 is out of range. Write a number from 1 to 65535"),
        (FEED + 'tables = ["orders"]', "feed.tables: 'orders' names no schema. Write SCHEMA.TABLE, shop.* or *.orders"),
        (FEED + 'format = "csv"', 'feed.format: has no choice "csv". Write "delta" or "iceberg"'),
        (
            FEED.replace("/lake", "s3://lake") + 'format = "iceberg"',
            'feed: format = "iceberg" in a bucket needs `catalog`',
        ),
        (
            FEED + SOURCE.replace('"db"', '"d\\u001bb"'),
            'feed.source.host: "d?b": this has characters that cannot be seen. Write it without control characters and line ends',
        ),
        (FEED + 'assume_empty = true\nstart = "latest"', 'feed: assume_empty goes with start = "earliest" only'),
    ],
)
def test_a_mistake_is_answered_with_what_feed_toml_knows(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "feed.toml"
    path.write_text(text + "\n")
    with pytest.raises(ConfigError) as error:
        load_feed_config(path)
    assert f"{path}: 1 problem\n  {sentence}" in str(error.value)


def test_who_names_no_file_is_told_where_samples_of_this_file_are(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        load_feed_config(tmp_path / "nothing.toml")
    assert "docs/FEED.md has samples" in str(error.value) and "relay.toml" not in str(error.value)
