"""[http] of relay.toml: where monitors ask, and who may."""

import json
from pathlib import Path

import pytest

from relay.config import Config, ConfigError, load_config
from relay.config.reload import waiting_for_restart

BASE = """
[source]
host = "db"
user = "repl"
password = "source-secret"
server_id = 7
[archive]
dir = "archive"
[[account]]
user = "replica"
password = "replica-secret"
[http]
"""


def loaded(directory: Path, text: str) -> Config:
    path = directory / "relay.toml"
    path.write_text(BASE + text, encoding="utf-8")
    path.chmod(0o600)
    return load_config(path)


def problems(directory: Path, text: str) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        loaded(directory, text)
    return {problem.key: str(problem) for problem in caught.value.problems}


def warnings(directory: Path, text: str) -> dict[str, str]:
    return {problem.key: str(problem) for problem in loaded(directory, text).warnings}


def test_it_is_off_and_on_loopback_where_nothing_is_said(tmp_path: Path) -> None:
    http = loaded(tmp_path, "").http
    assert (http.enabled, http.host, http.port, http.token_text()) == (False, "127.0.0.1", 9307, None)


def test_a_token_comes_from_its_file_without_the_newline(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("0123456789abcdef\n")
    assert loaded(tmp_path, 'token_file = "token"').http.token_text() == "0123456789abcdef"


def test_no_token_is_shown_by_a_configuration(tmp_path: Path) -> None:
    config = loaded(tmp_path, 'token = "0123456789abcdef"')
    assert "0123456789abcdef" not in repr(config) + str(config) + json.dumps(config.model_dump(mode="json"))


@pytest.mark.parametrize(
    ("text", "key", "part"),
    [
        ('token = ""', "http.token", "empty"),
        ('token = "with a space in it"', "http.token", "cannot stand in a header"),
        ('token = "0123456789abcdef"\ntoken_env = "HOME"', "http.token", "given 2 times"),
        ('token_file = "nowhere"', "http.token_file", "cannot be read"),
        ('token_env = "NO_SUCH_VARIABLE"', "http.token_env", "has no variable"),
        ('tls_cert = "cert.pem"', "http.tls_key", "is missing"),
        ('tls_cert = "cert.pem"\ntls_key = "key.pem"', "http.tls_cert", "cannot be read"),
        ("enabled = true\nport = 3307", "http.port", "as listen.port is"),
        ("ready_behind_s = 0", "http.ready_behind_s", "above 0"),
        ("max_connections = 0", "http.max_connections", "from 1"),
        ("tokn = 1", "http.tokn", "Did you mean token?"),
    ],
)
def test_a_mistake_is_named_with_its_key(tmp_path: Path, text: str, key: str, part: str) -> None:
    found = problems(tmp_path, text)
    assert part in found[key]


def test_a_port_that_others_reach_is_warned_of_without_token_or_tls(tmp_path: Path) -> None:
    assert "there is no token" in warnings(tmp_path, 'enabled = true\nhost = "0.0.0.0"')["http.host"]
    with_token = 'enabled = true\nhost = "0.0.0.0"\ntoken = "0123456789abcdef"'
    assert "there is no TLS" in warnings(tmp_path, with_token)["http.host"]
    assert "http.host" not in warnings(tmp_path, 'enabled = true\nhost = "::1"')


def test_a_short_token_is_warned_of(tmp_path: Path) -> None:
    assert "can be guessed" in warnings(tmp_path, 'token = "short"')["http.token"]


def test_a_new_token_is_taken_over_by_a_reload_and_a_new_port_waits(tmp_path: Path) -> None:
    before = loaded(tmp_path, 'token = "0123456789abcdef"')
    assert waiting_for_restart(before, loaded(tmp_path, 'token = "fedcba9876543210"')) == []
    assert waiting_for_restart(before, loaded(tmp_path, 'token = "0123456789abcdef"\nport = 9999')) == ["http.port"]


@pytest.fixture
def credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "credentials"
    directory.mkdir()
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(directory))
    return directory


CREDENTIAL = 'token_credential = "http.token"'


def test_a_token_comes_from_a_credential_of_the_service(tmp_path: Path, credentials: Path) -> None:
    (credentials / "http.token").write_text("0123456789abcdef\n")
    assert loaded(tmp_path, CREDENTIAL).http.token_text() == "0123456789abcdef"


def test_a_credential_that_cannot_be_read_is_named_with_the_line_of_the_unit(tmp_path: Path, credentials: Path) -> None:
    (credentials / "http.token").mkdir()
    (text,) = problems(tmp_path, CREDENTIAL).values()
    assert "http.token_credential" in text
    assert f"{credentials / 'http.token'}: Is a directory" in text
    assert "LoadCredential=http.token:FILE" in text


def test_a_credential_without_systemd_says_how_to_try_it(
    tmp_path: Path, credentials: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CREDENTIALS_DIRECTORY")
    assert "at a prompt set CREDENTIALS_DIRECTORY" in problems(tmp_path, CREDENTIAL)["http.token_credential"]


@pytest.mark.parametrize(
    ("content", "part"),
    [(b"", "the token is empty"), (b"\xff\xfe", "not UTF-8"), (b"0123456789\nabcdef", "cannot stand in a header")],
)
def test_a_credential_that_is_no_token_is_named(tmp_path: Path, credentials: Path, content: bytes, part: str) -> None:
    (credentials / "http.token").write_bytes(content)
    assert part in problems(tmp_path, CREDENTIAL)["http.token_credential"]


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "..", "a b"])
def test_a_name_of_a_credential_leads_nowhere_else(tmp_path: Path, credentials: Path, name: str) -> None:
    found = problems(tmp_path, CREDENTIAL.replace("http.token", name))
    assert "no name of a credential" in found["http.token_credential"]


def test_a_credential_is_a_token_as_others_are(tmp_path: Path, credentials: Path) -> None:
    (credentials / "http.token").write_text("0123456789abcdef")
    assert "given 2 times" in problems(tmp_path, f'{CREDENTIAL}\ntoken_env = "HOME"')["http.token"]
    told = warnings(tmp_path, f'enabled = true\nhost = "0.0.0.0"\n{CREDENTIAL}')["http.host"]
    assert "in clear" in told


def test_another_credential_of_the_token_waits_for_no_restart_of_other_keys(tmp_path: Path, credentials: Path) -> None:
    for name in ("http.token", "other"):
        (credentials / name).write_text("0123456789abcdef")
    before = loaded(tmp_path, CREDENTIAL)
    assert waiting_for_restart(before, loaded(tmp_path, 'token_credential = "other"')) == []
