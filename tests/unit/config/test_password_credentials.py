"""Passwords as credentials of a service: systemd's LoadCredential=."""

from pathlib import Path

import pytest

from relay.config import ConfigError, Problem, ServerSource, load_config
from relay.config.reload import waiting_for_restart

CONFIG = """
[source]
host = "127.0.0.1"
user = "repl"
password_credential = "source.password"
server_id = 7
[archive]
dir = "archive"
[[account]]
user = "replica"
password_credential = "replica.password"
"""


@pytest.fixture
def credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "credentials"
    directory.mkdir()
    (directory / "source.password").write_text("of the source\n")
    (directory / "replica.password").write_text("of the replica")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(directory))
    return directory


def written(directory: Path, text: str = CONFIG) -> Path:
    path = directory / "relay.toml"
    path.write_text(text)
    path.chmod(0o640)
    return path


def problems(path: Path) -> dict[str, Problem]:
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    return {problem.key: problem for problem in caught.value.problems}


def test_passwords_are_read_from_the_credentials_of_the_service(tmp_path: Path, credentials: Path) -> None:
    config = load_config(written(tmp_path))
    assert isinstance(config.source, ServerSource)
    assert config.source.password_text() == "of the source"
    assert config.accounts[0].password_text() == "of the replica"


def test_a_credential_that_is_not_there_is_named_with_the_line_of_the_unit(tmp_path: Path, credentials: Path) -> None:
    (credentials / "replica.password").unlink()
    (problem,) = problems(written(tmp_path)).values()
    assert problem.key == "account#1.password_credential"
    assert "replica.password cannot be read" in problem.what
    assert str(credentials) in problem.what
    assert "LoadCredential=replica.password:FILE" in problem.instead


def test_a_credential_that_is_a_directory_or_no_text_is_named(tmp_path: Path, credentials: Path) -> None:
    (credentials / "source.password").write_bytes(b"\xff\xfe")
    (credentials / "replica.password").unlink()
    (credentials / "replica.password").mkdir()
    found = problems(written(tmp_path))
    assert "not UTF-8" in found["source.password_credential"].what
    assert "Is a directory" in found["account#1.password_credential"].what


def test_without_systemd_it_is_said_how_to_try_it(
    tmp_path: Path, credentials: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CREDENTIALS_DIRECTORY")
    found = problems(written(tmp_path))["source.password_credential"]
    assert "no CREDENTIALS_DIRECTORY" in found.what
    assert "at a prompt set CREDENTIALS_DIRECTORY" in found.instead


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "a/b", "..", "a b", "-x", "x" * 256])
def test_a_name_leads_nowhere_else(tmp_path: Path, credentials: Path, name: str) -> None:
    path = written(tmp_path, CONFIG.replace("source.password", name))
    assert "no name of a credential" in problems(path)["source.password_credential"].what


def test_one_form_of_a_password_is_enough(tmp_path: Path, credentials: Path) -> None:
    path = written(tmp_path, CONFIG.replace('user = "repl"', 'user = "repl"\npassword = "clear"'))
    assert "password, password_credential" in problems(path)["source.password"].what


def test_another_credential_waits_for_no_restart(tmp_path: Path, credentials: Path) -> None:
    (credentials / "other").write_text("other")
    before = load_config(written(tmp_path))
    after = load_config(written(tmp_path, CONFIG.replace("source.password", "other")))
    assert waiting_for_restart(before, after) == []
