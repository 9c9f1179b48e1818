"""The keys of [source] that say how the relay enters it: TLS and what goes together."""

from pathlib import Path

import pytest

from relay.config import ServerSource, StartGtid
from tests.unit.config.test_config import ARCHIVE, SOURCE, loaded, problems


def made(directory: Path, name: str, mode: int = 0o600) -> Path:
    path = directory / name
    path.write_text("pem\n")
    path.chmod(mode)
    return path


def test_tls_is_preferred_unless_told_otherwise(tmp_path: Path) -> None:
    source = loaded(tmp_path, SOURCE + ARCHIVE).source
    assert isinstance(source, ServerSource)
    assert (source.ssl_mode, source.ssl_ca, source.ssl_cert, source.ssl_key) == ("preferred", None, None, None)


def test_tls_files_are_relative_to_the_configuration(tmp_path: Path) -> None:
    for name in ("ca.pem", "cert.pem", "key.pem"):
        made(tmp_path, name)
    text = SOURCE + 'ssl_mode = "verify_ca"\nssl_ca = "ca.pem"\nssl_cert = "cert.pem"\nssl_key = "key.pem"\n' + ARCHIVE
    config = loaded(tmp_path, text)
    assert isinstance(config.source, ServerSource)
    assert config.source.ssl_ca == tmp_path / "ca.pem"
    assert config.source.ssl_key == tmp_path / "key.pem"
    assert "source.ssl_key" not in {warning.key for warning in config.warnings}


def test_an_unknown_mode_is_told_the_choices(tmp_path: Path) -> None:
    found = problems(tmp_path, SOURCE + 'ssl_mode = "on"\n' + ARCHIVE)
    assert '"verify_identity"' in found["source.ssl_mode"].instead


@pytest.mark.parametrize("key", ["ssl_ca", "ssl_cert", "ssl_key"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, key: str) -> None:
    found = problems(tmp_path, SOURCE + f'{key} = "missing.pem"\n' + ARCHIVE)
    assert "missing.pem cannot be read" in found[f"source.{key}"].what


def test_a_certificate_needs_its_key(tmp_path: Path) -> None:
    made(tmp_path, "cert.pem")
    found = problems(tmp_path, SOURCE + 'ssl_cert = "cert.pem"\n' + ARCHIVE)
    assert "ssl_cert is given" in found["source.ssl_key"].what


@pytest.mark.parametrize(("mode", "words"), [("required", "checks no certificate"), ("disabled", "is not used")])
def test_an_authority_that_is_not_used_is_told(tmp_path: Path, mode: str, words: str) -> None:
    made(tmp_path, "ca.pem")
    config = loaded(tmp_path, SOURCE + f'ssl_mode = "{mode}"\nssl_ca = "ca.pem"\n' + ARCHIVE)
    assert words in {warning.key: warning.what for warning in config.warnings}["source.ssl_ca"]


def test_a_key_that_everybody_can_read_is_told(tmp_path: Path) -> None:
    made(tmp_path, "cert.pem")
    made(tmp_path, "key.pem", 0o644)
    config = loaded(tmp_path, SOURCE + 'ssl_cert = "cert.pem"\nssl_key = "key.pem"\n' + ARCHIVE)
    assert "every user can read it" in {warning.key: warning.what for warning in config.warnings}["source.ssl_key"]


def test_nothing_is_acknowledged_unless_told(tmp_path: Path) -> None:
    assert getattr(loaded(tmp_path, SOURCE + ARCHIVE).source, "ack", None) == "none"
    assert getattr(loaded(tmp_path, SOURCE + 'ack = "synced"\n' + ARCHIVE).source, "ack", None) == "synced"
    assert '"synced"' in problems(tmp_path, SOURCE + 'ack = "received"\n' + ARCHIVE)["source.ack"].instead


@pytest.mark.parametrize("gtid", ["3E11FA47-71CA-11E1-9E33-C80AA9429562:1-77:tag:1, ", "0-1-77,7-2-5"])
def test_a_start_by_gtid_is_taken_as_it_is_written(tmp_path: Path, gtid: str) -> None:
    config = loaded(tmp_path, SOURCE + f'start = {{ gtid = "{gtid}" }}\n' + ARCHIVE)
    assert config.source.start == StartGtid(gtid=gtid)


@pytest.mark.parametrize("gtid", ["", "mysql-bin.000001", "0-1", "3E11FA47-71CA-11E1-9E33-C80AA9429562:5-1"])
def test_what_is_no_gtid_of_any_server_is_told_what_one_looks_like(tmp_path: Path, gtid: str) -> None:
    found = problems(tmp_path, SOURCE + f'start = {{ gtid = "{gtid}" }}\n' + ARCHIVE)
    assert '"0-1-77" (MariaDB)' in found["source.start.gtid"].instead


def test_a_start_by_gtid_and_by_file_is_refused(tmp_path: Path) -> None:
    found = problems(tmp_path, SOURCE + 'start = { gtid = "0-1-77", file = "mysql-bin.000001" }\n' + ARCHIVE)
    assert found["source.start.file"].what == "there is no such key"


def test_a_directory_cannot_be_asked_by_gtid(tmp_path: Path) -> None:
    text = f'[source]\nkind = "directory"\npath = "{tmp_path}"\nstart = {{ gtid = "0-1-77" }}\n' + ARCHIVE
    assert "only a running source" in problems(tmp_path, text)["source.start"].what
