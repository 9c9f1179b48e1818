"""[[replica]] in relay.toml: its mistakes, and that no password is shown."""

from pathlib import Path

import pytest

from relay.config import ConfigError, load_config

HEAD = """
[source]
kind = "directory"
path = "binlogs"
[archive]
dir = "archive"
"""
GOOD = '[[replica]]\nhost = "new"\nuser = "watch"\npassword = "hunter2"\n'


def problems(directory: Path, text: str) -> list[str]:
    file = directory / "relay.toml"
    file.write_text(HEAD + text)
    file.chmod(0o600)
    try:
        config = load_config(file)
    except ConfigError as error:
        return [str(problem) for problem in error.problems]
    assert "hunter2" not in repr(config)
    return []


def test_an_account_at_a_replica_is_read(tmp_path: Path) -> None:
    assert problems(tmp_path, GOOD) == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (GOOD + GOOD, "replica#2.host"),
        (GOOD.replace('password = "hunter2"', ""), "replica#1.password: is missing"),
        (GOOD + 'ssl_mode = "verify_ca"\n', "replica#1.ssl_ca: is missing"),
        (GOOD + 'ssl_ca = "nowhere.pem"\nssl_mode = "verify_ca"\n', "nowhere.pem cannot be read"),
        (GOOD.replace("user", "usr"), "replica#1.usr: there is no such key. Did you mean user?"),
        (GOOD.replace("[[replica]]", "[replica]"), "replica: is of the wrong type"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, text: str, told: str) -> None:
    assert any(told in problem for problem in problems(tmp_path, text))
