"""The configuration file: what it takes, and how each mistake is told."""

import hashlib
import shutil
import socket
from pathlib import Path

import pytest

from relay.config import Config, ConfigError, DirectorySource, Problem, ServerSource, StartPosition, load_config

SAMPLE = Path(__file__).parents[3] / "deploy" / "relay.toml"

SOURCE = """
[source]
host = "127.0.0.1"
user = "repl"
password = "hunter2"
server_id = 7
"""
ARCHIVE = """
[archive]
dir = "archive"
"""
ACCOUNT = """
[[account]]
user = "replica"
password = "hunter3"
"""


def written(directory: Path, text: str) -> Path:
    path = directory / "relay.toml"
    path.write_text(text)
    path.chmod(0o640)
    return path


def loaded(directory: Path, text: str) -> Config:
    return load_config(written(directory, text))


def problems(directory: Path, text: str) -> dict[str, Problem]:
    with pytest.raises(ConfigError) as caught:
        loaded(directory, text)
    return {problem.key: problem for problem in caught.value.problems}


def test_the_sample_configuration_loads(tmp_path: Path) -> None:
    copy = tmp_path / "relay.toml"
    shutil.copy(SAMPLE, copy)
    copy.chmod(0o640)
    assert load_config(copy).warnings == ()


def test_a_relay_of_a_directory_has_no_id_to_present(tmp_path: Path) -> None:
    source = f"[source]\nkind = 'directory'\npath = '{tmp_path}'\n"
    found = problems(tmp_path, source + ARCHIVE + "[listen]\npresent_as = 'relay'\n")
    assert "no server_id of its own" in found["listen.present_as"].what


@pytest.mark.parametrize("version", ["5.6.2", "8.0.36-log", "9.7", "10.11.6-MariaDB-log", "5.5.5-10.3.1-MariaDB"])
def test_a_version_that_replicas_accept_is_taken(tmp_path: Path, version: str) -> None:
    assert loaded(tmp_path, SOURCE + ARCHIVE + f"[listen]\nversion = '{version}'\n").listen.version == version


def test_a_short_configuration_gets_the_documented_defaults(tmp_path: Path) -> None:
    config = loaded(tmp_path, SOURCE + ARCHIVE + ACCOUNT)
    assert isinstance(config.source, ServerSource)
    assert (config.source.port, config.source.start, config.source.heartbeat_period_s) == (3306, "earliest", 10)
    assert (config.archive.sync, config.archive.publish, config.listen.position_wait_s) == ("interval", "written", 10)
    assert (config.listen.port, config.listen.max_connections, config.accounts[0].markers) == (3307, 500, "tbm")


def test_the_archive_directory_is_named_after_the_source_and_relative_to_the_file(tmp_path: Path) -> None:
    config = loaded(tmp_path, SOURCE.replace("[source]", '[source]\nname = "shop"') + ARCHIVE)
    assert config.archive_directory == tmp_path / "archive" / "shop"


def test_a_directory_source_needs_only_its_path(tmp_path: Path) -> None:
    config = loaded(tmp_path, '[source]\nkind = "directory"\npath = "old"\n' + ARCHIVE)
    assert isinstance(config.source, DirectorySource)
    assert config.source.path == tmp_path / "old"


def test_a_start_position_is_taken_as_a_file_and_an_offset(tmp_path: Path) -> None:
    text = SOURCE + 'start = { file = "mysql-bin.000042", position = 120 }\n' + ARCHIVE
    assert loaded(tmp_path, text).source.start == StartPosition(file="mysql-bin.000042", position=120)


def test_three_mistakes_are_reported_together(tmp_path: Path) -> None:
    text = SOURCE.replace("user =", "usr =") + "port = 70000\n" + '[archive]\ndir = "a"\nsync = "always"\n'
    assert set(problems(tmp_path, text)) == {"source.user", "source.usr", "source.port", "archive.sync"}


@pytest.mark.parametrize(
    ("text", "key", "part"),
    [
        (SOURCE + "pasword = 1" + ARCHIVE, "source.pasword", "Did you mean password?"),
        (SOURCE + "publish = 1" + ARCHIVE, "source.publish", "belongs to [archive]"),
        (SOURCE + ARCHIVE + "[listne]", "listne", "Did you mean listen?"),
        (SOURCE + ARCHIVE + '[retention]\nkeep_fr = "3d"', "retention.keep_fr", "Did you mean keep_for?"),
        (SOURCE + ARCHIVE + '[listen]\nendpoint = "b"', "listen.endpoint", "belongs to [archive.bucket]"),
        (
            SOURCE + ARCHIVE + "[archive.mirror]\ninterval_s = 0",
            "archive.mirror.interval_s",
            "above 0 and at most 3600",
        ),
        (SOURCE + ARCHIVE + "[listen]\nport = 0", "listen.port", "from 1 to 65535"),
        (SOURCE + ARCHIVE + '[listen]\nport = "3307"', "listen.port", "whole number without quotes"),
        (SOURCE + ARCHIVE + "[listen]\nport = true", "listen.port", "true is of the wrong type"),
        (SOURCE + ARCHIVE + '[listen]\npresent_as = "me"', "listen.present_as", "source"),
        (SOURCE + ARCHIVE + '[listen]\nversion = "v8.0"', "listen.version", "5.7.44-log"),
        (SOURCE + ARCHIVE + '[listen]\nversion = "4.1.22"', "listen.version", "from 5.6.2 to 9"),
        (SOURCE + ARCHIVE + '[listen]\nversion = "5.5.62-log"', "listen.version", "from 5.6.2 to 9"),
        (SOURCE + ARCHIVE + '[listen]\nversion = "10.11.6"', "listen.version", "MariaDB"),
        (SOURCE + ARCHIVE + '[listen]\nversion = "8.0.36\\n"', "listen.version", "59 characters"),
        (SOURCE + ARCHIVE + "[listen]\ndemand_acks = 1", "listen.demand_acks", "true or false"),
        (SOURCE + ARCHIVE + "[listen]\nhandshake_timeout_s = 0", "listen.handshake_timeout_s", "above 0"),
        (SOURCE + ARCHIVE + "[listen]\nposition_wait_s = nan", "listen.position_wait_s", "finite"),
        (SOURCE.replace("= 7", "= 0") + ARCHIVE, "source.server_id", "from 1 to 4294967295"),
        (SOURCE.replace("= 7", "= 4294967296") + ARCHIVE, "source.server_id", "from 1 to 4294967295"),
        (SOURCE.replace('"repl"', '""') + ARCHIVE, "source.user", "is empty"),
        (SOURCE + 'kind = "sever"' + ARCHIVE, "source.kind", 'Write "server" or "directory"'),
        (SOURCE + 'start = "first"' + ARCHIVE, "source.start", "earliest"),
        (SOURCE + 'start = { file = "../x.000001" }' + ARCHIVE, "source.start.file", "no path"),
        (SOURCE + 'start = { file = "x.000001", position = 3 }' + ARCHIVE, "source.start.position", "from 4"),
        (SOURCE + 'name = "../up"' + ARCHIVE, "source.name", "cannot be a directory"),
        (SOURCE, "archive", "is missing"),
        (ARCHIVE, "source", "is missing"),
        (SOURCE + ARCHIVE + ACCOUNT + 'markers = "tmb"', "account#1.markers", '"tbm"'),
        (SOURCE + ARCHIVE + ACCOUNT + ACCOUNT, "account#2.user", "is also account#1"),
        (SOURCE + ARCHIVE + '[[account]]\nuser = "r"', "account#1.password", "is missing"),
        (SOURCE + 'password_env = "HOME"' + ARCHIVE, "source.password", "is given 2 times"),
        (SOURCE + ARCHIVE + ACCOUNT + 'password_hash = "*12"', "account#1.password_hash", "40 hexadecimal"),
        (SOURCE + ARCHIVE + "account = 3", "account", "[[account]]"),
    ],
)
def test_a_mistake_names_its_key_and_what_to_write(tmp_path: Path, text: str, key: str, part: str) -> None:
    if text.endswith("account = 3"):
        text = "account = 3\n" + text.removesuffix("account = 3")
    assert part in str(problems(tmp_path, text)[key])


@pytest.mark.parametrize("secret", ["hunter2", "hunter3", "hunter4"])
def test_no_secret_is_in_an_error_text(tmp_path: Path, secret: str) -> None:
    text = SOURCE + "port = 0" + ARCHIVE + ACCOUNT + 'password_hash = "hunter4"\npassowrd = "hunter3"'
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, text)
    assert secret not in str(caught.value) + repr(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("text_of", [repr, str])
def test_no_secret_is_in_the_text_of_a_configuration(tmp_path: Path, text_of: type[str]) -> None:
    assert "hunter" not in text_of(loaded(tmp_path, SOURCE + ARCHIVE + ACCOUNT))


@pytest.mark.parametrize(
    ("text", "place"),
    [("[source]\nhost = \n", "line 2, column 8"), ("[source]\nhost = 'a", "line 2, column 10")],
)
def test_a_syntax_error_names_line_and_column(tmp_path: Path, text: str, place: str) -> None:
    assert list(problems(tmp_path, text)) == [place]


def test_a_missing_file_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(tmp_path / "none.toml")


def test_a_file_that_is_not_utf8_is_a_configuration_error(tmp_path: Path) -> None:
    path = tmp_path / "relay.toml"
    path.write_bytes(b'[source]\nhost = "\xff"\n')
    with pytest.raises(ConfigError, match="byte 17 is not UTF-8"):
        load_config(path)


def test_a_password_comes_from_its_file_without_the_last_newline(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(" two words \n")
    secret.chmod(0o600)
    config = loaded(tmp_path, SOURCE.replace('password = "hunter2"', 'password_file = "secret"') + ARCHIVE)
    assert isinstance(config.source, ServerSource)
    assert config.source.password_text() == " two words "


def test_a_password_comes_from_its_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAY_TEST_PASSWORD", "from outside")
    text = SOURCE.replace('password = "hunter2"', 'password_env = "RELAY_TEST_PASSWORD"') + ARCHIVE
    source = loaded(tmp_path, text).source
    assert isinstance(source, ServerSource)
    assert source.password_text() == "from outside"


def test_a_missing_password_file_is_a_mistake(tmp_path: Path) -> None:
    text = SOURCE.replace('password = "hunter2"', 'password_file = "none"') + ARCHIVE
    assert "cannot be read" in str(problems(tmp_path, text)["source.password_file"])


def test_a_missing_password_variable_is_a_mistake(tmp_path: Path) -> None:
    text = SOURCE.replace('password = "hunter2"', 'password_env = "RELAY_TEST_NONE"') + ARCHIVE
    assert "no variable RELAY_TEST_NONE" in str(problems(tmp_path, text)["source.password_env"])


def test_a_secret_file_that_all_can_read_is_a_warning(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    secret.chmod(0o644)
    config = loaded(tmp_path, SOURCE.replace('password = "hunter2"', 'password_file = "secret"') + ARCHIVE + ACCOUNT)
    assert [warning.key for warning in config.warnings] == ["source.password_file"]


def test_a_configuration_with_a_password_that_all_can_read_is_a_warning(tmp_path: Path) -> None:
    path = written(tmp_path, SOURCE + ARCHIVE + ACCOUNT)
    path.chmod(0o644)
    assert [warning.key for warning in load_config(path).warnings] == ["file"]


def test_an_empty_password_is_a_warning(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("\n")
    secret.chmod(0o600)
    text = (
        SOURCE + ARCHIVE + '[[account]]\nuser = "a"\npassword = ""\n[[account]]\nuser = "b"\npassword_file = "secret"\n'
    )
    assert [warning.key for warning in loaded(tmp_path, text).warnings] == ["account#1.password", "account#2.password"]


@pytest.mark.parametrize(
    ("account", "key", "part"),
    [
        ('host = "db.example.com"', "account#1.host", "names are not looked up"),
        ('host = "10.0.0.1/24"', "account#1.host", "does not cover"),
        ('plugin = "sha256_password"', "account#1.plugin", "caching_sha2_password"),
        ('admin = "yes"', "account#1.admin", "true or false"),
    ],
)
def test_a_mistake_in_an_account_names_its_key(tmp_path: Path, account: str, key: str, part: str) -> None:
    assert part in str(problems(tmp_path, SOURCE + ARCHIVE + ACCOUNT + account)[key])


def test_a_plugin_that_cannot_check_the_hash_is_a_mistake(tmp_path: Path) -> None:
    account = f'[[account]]\nuser = "r"\npassword_hash = "*{"0" * 40}"\nplugin = "client_ed25519"\n'
    text = str(problems(tmp_path, SOURCE + ARCHIVE + account)["account#1.plugin"])
    assert 'Write plugin = "mysql_native_password"' in text


def test_one_user_may_have_an_account_for_each_of_several_hosts(tmp_path: Path) -> None:
    accounts = ACCOUNT + 'host = "10.0.0.0/8"' + ACCOUNT + 'host = "192.0.2.1"' + ACCOUNT
    assert len(loaded(tmp_path, SOURCE + ARCHIVE + accounts).accounts) == 3
    same = ACCOUNT + 'host = "10.0.0.0/8"' + ACCOUNT + 'host = "10.0.0.0/255.0.0.0"'
    assert "is also account#1" in str(problems(tmp_path, SOURCE + ARCHIVE + same)["account#2.user"])


def test_no_account_is_a_warning(tmp_path: Path) -> None:
    assert [warning.key for warning in loaded(tmp_path, SOURCE + ARCHIVE).warnings] == ["account"]


def test_the_native_hash_is_the_same_from_password_and_stored_hash(tmp_path: Path) -> None:
    stored = "*" + hashlib.sha1(hashlib.sha1(b"hunter3").digest()).hexdigest().upper()
    text = SOURCE + ARCHIVE + ACCOUNT + f'[[account]]\nuser = "second"\npassword_hash = "{stored}"\n'
    first, second = loaded(tmp_path, text).accounts
    assert first.credentials().native == second.credentials().native


def test_an_account_with_only_a_hash_has_no_password_text(tmp_path: Path) -> None:
    text = SOURCE + ARCHIVE + f'[[account]]\nuser = "r"\npassword_hash = "*{"0" * 40}"\n'
    assert loaded(tmp_path, text).accounts[0].password_text() is None


def test_checking_a_configuration_opens_no_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object) -> None:
        raise AssertionError("load_config touched the network")

    monkeypatch.setattr(socket, "socket", refuse)
    loaded(tmp_path, SOURCE + ARCHIVE)
