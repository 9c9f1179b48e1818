"""[archive.tiers], [archive.bucket], [archive.encryption]: what is taken, and which combinations are refused."""

from pathlib import Path

import pytest

from relay.config import ConfigError, load_config
from relay.object_store.store_options import StoreOptions
from relay.packed.key_ring import KeySource
from tests.unit.config.test_retention_section import written

BUCKET = ["[archive.bucket]", 'url = "s3://binlogs/relay-a"']
TIERS = ["[archive.tiers]", 'cold_after = "2d"', 'object_after = "14d"']


def test_all_of_it_is_taken_with_paths_from_the_files_own_directory(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s")
    (tmp_path / "key").write_text("00" * 32)
    archive = load_config(
        written(
            tmp_path,
            *[*BUCKET, 'secret_key_file = "secret"', *TIERS, "[archive.encryption]", 'active = "a"'],
            *["[[archive.encryption.key]]", 'id = "a"', 'file = "key"'],
        )
    ).archive
    assert archive.bucket is not None and archive.tiers is not None and archive.encryption is not None
    assert archive.bucket.options() == StoreOptions("s3://binlogs/relay-a", secret_key_file=f"{tmp_path}/secret")
    assert [key.source() for key in archive.encryption.keys] == [KeySource("a", file=f"{tmp_path}/key")]
    assert archive.tiers.moves_to_bucket


def test_what_is_read_from_a_bucket_may_have_its_room_without_a_rule(tmp_path: Path) -> None:
    tiers = load_config(written(tmp_path, *BUCKET, "[archive.tiers]", 'read_cache = "64MiB"')).archive.tiers
    assert tiers is not None and (tiers.read_cache, tiers.moves_to_bucket) == ("64MiB", False)


def test_without_the_sections_nothing_moves(tmp_path: Path) -> None:
    assert load_config(written(tmp_path)).archive.tiers is None


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (TIERS, "archive.tiers.object_after: there is no bucket"),
        (["[archive.tiers]", "level = 1"], "archive.tiers: there is no rule in it"),
        ([*BUCKET, "[archive.tiers]", 'cold_after = "9d"', 'object_after = "8d"'], '"8d" is shorter than cold_after = "9d"'),
        (["[archive.tiers]", 'cold_after = "2d"', "colt_bytes = 1"], "archive.tiers.colt_bytes: there is no such key. Did you mean"),
        (["[archive.tiers]", 'cold_after = "2d"', "level = 20"], "archive.tiers.level: 20 is out of range. Write a number from"),
        (["[archive.bucket]", 'url = "binlogs"'], 'archive.bucket.url: "binlogs": this is no bucket. A bucket is written s3://'),
        (["[archive.bucket]", 'region = "x"'], "archive.bucket.url: is missing"),
        ([*BUCKET, 'secret_key_file = "/none"'], "archive.bucket.secret_key_file: /none cannot be read"),
        (["[archive.encryption]", 'active = "b"'], 'archive.encryption.active: "b" is no key of this file'),
        (["[[archive.encryption.key]]", 'id = "a"'], "archive.encryption.key#1: has no place"),
        (["[[archive.encryption.key]]", 'id = "a"', 'env = "NO_SUCH"'], "the variable NO_SUCH is not set"),
        (["[[archive.encryption.key]]", 'id = "a"', 'credential = "x"'], "CREDENTIALS_DIRECTORY is not set"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_with_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str], said: str
) -> None:
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    with pytest.raises(ConfigError) as refused:
        load_config(written(tmp_path, *lines))
    assert said in str(refused.value)


@pytest.mark.parametrize("url", ["az://container/prefix?sig=SECRET", "s3://key:SECRET@binlogs/relay-a"])
def test_a_url_with_a_secret_in_it_is_refused_without_being_said_again(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_config(written(tmp_path, "[archive.bucket]", f'url = "{url}"'))
    assert "archive.bucket.url: this is no bucket" in str(refused.value)
    assert "SECRET" not in str(refused.value)
