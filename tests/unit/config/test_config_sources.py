"""[[source]] more than once and [failover]: who may take the source's place, and what does not go together."""

from pathlib import Path

import pytest

from relay.config import ServerSource
from tests.unit.config.test_config import ACCOUNT, ARCHIVE, loaded, problems

FIRST = """
[[source]]
host = "db1"
user = "repl"
password = "hunter2"
server_id = 4242
ssl_mode = "required"
heartbeat_period_s = 5
"""


def test_one_source_has_no_others(tmp_path: Path) -> None:
    config = loaded(tmp_path, FIRST + ARCHIVE + ACCOUNT)
    assert isinstance(config.source, ServerSource) and config.sources == (config.source,)
    assert (config.failover.mode, config.failover.after_s) == ("manual", 60.0)


def test_what_another_source_leaves_out_is_as_in_the_first(tmp_path: Path) -> None:
    text = FIRST + '[[source]]\nhost = "db2"\nport = 3310\n[failover]\nmode = "automatic"\nafter_s = 30\n'
    config = loaded(tmp_path, text + ARCHIVE + ACCOUNT)
    first, second = config.sources
    assert (second.host, second.port, second.user, second.password_text()) == ("db2", 3310, "repl", "hunter2")
    assert (second.server_id, second.ssl_mode, second.heartbeat_period_s) == (4242, "required", 5)
    assert (first.host, config.failover.mode, config.failover.after_s) == ("db1", "automatic", 30)


def test_another_source_may_have_an_account_of_its_own(tmp_path: Path) -> None:
    secret = tmp_path / "second.password"
    secret.write_text("other\n")
    secret.chmod(0o600)
    text = FIRST + '[[source]]\nhost = "db2"\nuser = "other"\npassword_file = "second.password"\n'
    first, second = loaded(tmp_path, text + ARCHIVE + ACCOUNT).sources
    assert (first.password_text(), second.user, second.password_text()) == ("hunter2", "other", "other")


@pytest.mark.parametrize(
    ("other", "key", "what"),
    [
        ('host = "db1"', "source#2.host", "are source's"),
        ('host = "db2"\nname = "elsewhere"', "source#2.name", "share one archive"),
        ('host = "db2"\nport = 99999', "source#2.port", "99999"),
        ('host = "db2"\nhots = "db3"', "source#2.hots", "no such key"),
        ('host = "db2"\npassword_env = "NOBODY_HAS_SET_THIS"', "source#2.password_env", "no variable"),
        ('host = "db2"\nssl_ca = "missing.pem"', "source#2.ssl_ca", "cannot be read"),
        ('kind = "directory"\npath = "/tmp"', "source#2.kind", "share one archive"),
    ],
)
def test_a_mistake_in_another_source_is_named_with_its_number(tmp_path: Path, other: str, key: str, what: str) -> None:
    found = problems(tmp_path, f"{FIRST}[[source]]\n{other}\n{ARCHIVE}{ACCOUNT}")
    assert key in found and what in f"{found[key]}"


def test_a_mistake_in_the_first_source_is_said_once(tmp_path: Path) -> None:
    text = FIRST.replace("server_id = 4242", "server_id = 0") + '[[source]]\nhost = "db2"\n'
    assert list(problems(tmp_path, text + ARCHIVE + ACCOUNT)) == ["source.server_id"]


def test_an_automatic_failover_to_nobody_is_a_warning(tmp_path: Path) -> None:
    config = loaded(tmp_path, FIRST + '[failover]\nmode = "automatic"\n' + ARCHIVE + ACCOUNT)
    assert any(warning.key == "failover.mode" for warning in config.warnings)


@pytest.mark.parametrize(("line", "key"), [("mode = 'auto'", "failover.mode"), ("after_s = 0", "failover.after_s")])
def test_a_mistake_in_failover_is_named(tmp_path: Path, line: str, key: str) -> None:
    assert key in problems(tmp_path, f"{FIRST}[failover]\n{line}\n{ARCHIVE}{ACCOUNT}")
