"""[retention]: what is taken, and which combinations are refused."""

from pathlib import Path

import pytest

from relay.config import ConfigError, load_config
from relay.config.reload import waiting_for_restart
from relay.config.text.amounts import size_bytes, time_s
from relay.retention.retention_limits import RetentionLimits

BEGINNING = """
[source]
host = "db"
user = "repl"
password = "p"
server_id = 7
[archive]
dir = "/archive"
[[account]]
user = "replica"
password = "p"
"""


def written(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "relay.toml"
    path.write_text("\n".join([BEGINNING, *lines]))
    path.chmod(0o600)
    return path


def test_without_the_section_nothing_is_removed(tmp_path: Path) -> None:
    assert not load_config(written(tmp_path)).retention.removes


def test_times_and_sizes_are_as_they_are_written(tmp_path: Path) -> None:
    lines = ['keep_for = "30d"', 'keep_bytes = "500GiB"', 'min_free = "800MiB"', 'keep_at_least = "36h"']
    section = load_config(written(tmp_path, "[retention]", *lines)).retention
    limits = RetentionLimits.of(section)
    assert (limits.keep_for_s, limits.keep_bytes, limits.min_free_bytes) == (30 * 86400, 500 << 30, 800 << 20)
    assert (limits.keep_at_least_s, limits.forget_replicas_after_s) == (36 * 3600, 7 * 86400)
    assert (size_bytes("2TiB"), time_s("1h")) == (2 << 40, 3600)


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([], "retention: there is no limit in it"),
        (["keep_for_replicas = true"], "retention: there is no limit in it"),
        (['keep_for = "1d"', 'keep_bytes = "1GiB"', 'keep_at_least = "2d"'], 'longer than keep_for = "1d"'),
        (['keep_for = "9d"', 'keep_at_least = "2d"'], "neither keep_bytes nor min_free"),
        (
            ['keep_for = "9d"', "keep_for_replicas = false", 'forget_replicas_after = "2d"'],
            "retention.forget_replicas_after: with keep_for_replicas = false",
        ),
        (['keep_for = "30"'], 'retention.keep_for: "30": this is no time'),
        (['keep_for = "0d"'], 'retention.keep_for: "0d": this is no time'),
        (["keep_for = 30"], "retention.keep_for"),
        (['keep_bytes = "500GB"'], 'retention.keep_bytes: "500GB": this is no size'),
        (['min_free = "-1GiB"'], 'retention.min_free: "-1GiB": this is no size'),
        (['keep_for = "1d"', "keep_bites = 1"], "retention.keep_bites"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, lines: list[str], told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_config(written(tmp_path, "[retention]", *lines))
    assert told in str(refused.value)


def test_a_reload_takes_it_over(tmp_path: Path) -> None:
    before = load_config(written(tmp_path))
    after = load_config(written(tmp_path, "[retention]", 'keep_for = "30d"'))
    assert waiting_for_restart(before, after) == []
