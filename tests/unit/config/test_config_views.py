"""[[view]] and the accounts that are served one: what is taken, what each mistake is told as, what becomes of it."""

from pathlib import Path
from uuid import UUID

import pytest

from protocol.position import Position
from relay.archive.storage.archived_file import SourceIdentity
from relay.config import Config, view_settings
from relay.config.reload import waiting_for_restart
from relay.config.text.problems import Wrong
from relay.view.rules.settings import ViewStart, derived_uuid
from tests.unit.config.test_config import ACCOUNT, ARCHIVE, SOURCE, loaded, problems
from tests.unit.config.test_config_sources import FIRST

UUID_A = "aaaaaaaa-2222-3333-4444-555555555555"
IDENTITY = SourceIdentity("mysql", "5.6.24-log", 1, "11111111-2222-3333-4444-555555555555")
VIEW = '[[view]]\nname = "gtid"\n'
ALL_KEYS = f"""
[[view]]
name = "old"
gtids = "assign"
uuid = "{UUID_A.upper()}"
for = "mysql-5.6"
dependencies = "serial"
engines = "innodb"
account_statements = "keep"
explicit_defaults_for_timestamp = true
collations = {{ 255 = 45, 0309 = 46 }}
start = {{ file = "mysql-bin.000042", position = 120, next = 1000001 }}
"""


def with_view(directory: Path, text: str) -> Config:
    return loaded(directory, SOURCE + ARCHIVE + ACCOUNT + text)


def test_a_view_needs_a_name_only_and_is_the_one_that_a_new_mysql_wants(tmp_path: Path) -> None:
    (view,) = with_view(tmp_path, VIEW).views
    settings = view_settings(view, IDENTITY)
    assert (settings.name, settings.gtids, settings.target, settings.engines) == ("gtid", "assign", "mysql-9.7", "keep")
    assert (settings.account_statements, settings.explicit_timestamps, settings.start) == ("skip", False, None)
    assert settings.uuid == derived_uuid("mysql", 1, IDENTITY.server_uuid)


def test_all_keys_of_a_view_reach_its_settings(tmp_path: Path) -> None:
    (view,) = with_view(tmp_path, ALL_KEYS).views
    settings = view_settings(view, IDENTITY)
    assert (settings.uuid, settings.target_version, settings.engines) == (UUID(UUID_A), (5, 6), "innodb")
    assert (settings.account_statements, settings.explicit_timestamps) == ("keep", True)
    assert settings.collations == {255: 45, 309: 46}
    assert settings.start == ViewStart(Position("mysql-bin.000042", 120), 1000001)


def test_without_a_uuid_each_source_has_its_own_and_each_relay_of_it_the_same(tmp_path: Path) -> None:
    (view,) = with_view(tmp_path, VIEW).views
    other = SourceIdentity("mysql", "9.7.4", 2, IDENTITY.server_uuid)
    moved = SourceIdentity("mysql", "5.7.44-log", 1, IDENTITY.server_uuid)
    assert view_settings(view, other).uuid != view_settings(view, IDENTITY).uuid == view_settings(view, moved).uuid


def test_the_uuid_of_the_source_itself_is_refused(tmp_path: Path) -> None:
    (view,) = with_view(tmp_path, VIEW + f'uuid = "{IDENTITY.server_uuid}"\n').views
    with pytest.raises(Wrong, match="server_uuid of the source"):
        view_settings(view, IDENTITY)


def test_an_account_names_its_view(tmp_path: Path) -> None:
    config = with_view(tmp_path, 'view = "gtid"\n' + VIEW)
    assert [account.view for account in config.accounts] == ["gtid"]
    assert config.warnings == ()


@pytest.mark.parametrize(
    ("text", "key", "part"),
    [
        ("[[view]]\n", "view#1.name", 'Write name = "gtid"'),
        ('[[view]]\nname = "../up"', "view#1.name", "cannot be a directory"),
        ('[[view]]\nname = ""', "view#1.name", "cannot be a directory"),
        (f"{VIEW}{VIEW}", "view#2.name", "is also view#1"),
        (f'{VIEW}[[view]]\nname = "GTID"', "view#2.name", "same directory"),
        (f'{VIEW}gtids = "make"', "view#1.gtids", '"assign", "anonymous" or "keep"'),
        (f'{VIEW}for = "mysql-4.1"', "view#1.for", '"mysql-8.4" or "mysql-9.7"'),
        (f'{VIEW}target = "mysql-5.6"', "view#1.target", "no such key"),
        (f'{VIEW}dependencies = "none"', "view#1.dependencies", '"serial" or "writeset"'),
        (f'{VIEW}dependencies = "writeset"\nfor = "mysql-5.6"', "view#1.dependencies", "do not read"),
        (f'{VIEW}engines = "myisam"', "view#1.engines", '"keep" or "innodb"'),
        (f'{VIEW}uuid = "a-b"', "view#1.uuid", "this is no uuid"),
        (f'{VIEW}uuid = "00000000-0000-0000-0000-000000000000"', "view#1.uuid", "this is no uuid"),
        (f'{VIEW}gtids = "keep"\nuuid = "{UUID_A}"', "view#1.uuid", "no GTIDs are assigned"),
        (f"{VIEW}collations = {{ utf8 = 45 }}", "view#1.collations", "no number of a collation"),
        (f"{VIEW}collations = {{ 255 = 0 }}", "view#1.collations", "from 1 to 2047"),
        (f'{VIEW}collations = {{ 255 = "45" }}', "view#1.collations.255", "whole number"),
        (f"{VIEW}collations = [255, 45]", "view#1.collations", "a table such as { 255 = 45 }"),
        (f'{VIEW}start = "latest"', "view#1.start", '"earliest" or { file'),
        (f'{VIEW}start = {{ position = 4 }}', "view#1.start.file", "is missing"),
        (f'{VIEW}start = {{ file = "b.000001", next = 0 }}', "view#1.start.next", "from 1 to"),
        (f'{VIEW}start = {{ file = "b.000001", nxt = 1 }}', "view#1.start.nxt", "Did you mean next?"),
        (f"{VIEW}explicit_defaults_for_timestamp = 1", "view#1.explicit_defaults_for_timestamp", "true or false"),
        (f'{VIEW}engine = "innodb"', "view#1.engine", "Did you mean engines?"),
        ('view = "gtid"', "account#1.view", 'Add a [[view]] with name = "gtid"'),
        (f'view = "other"\n{VIEW}', "account#1.view", 'there is no [[view]] "other". Write one of gtid'),
        ('view = ""', "account#1.view", "is empty"),
        ("[view]\nname = 'gtid'", "view", "double brackets"),
    ],
)  # fmt: skip
def test_a_mistake_about_views_is_named_with_what_to_write(tmp_path: Path, text: str, key: str, part: str) -> None:
    found = problems(tmp_path, SOURCE + ARCHIVE + ACCOUNT + text + "\n")
    assert key in found and part in str(found[key])


def test_a_uuid_that_another_relay_may_not_come_to_is_warned_of(tmp_path: Path) -> None:
    several = loaded(tmp_path, FIRST + '[[source]]\nhost = "db2"\n' + ARCHIVE + ACCOUNT + VIEW)
    (warning,) = several.warnings
    assert warning.key == "view#1.uuid" and "several [[source]]" in warning.what
    directory = loaded(tmp_path, f"[source]\nkind = 'directory'\npath = '{tmp_path}'\n" + ARCHIVE + ACCOUNT + VIEW)
    (warning,) = directory.warnings
    assert warning.key == "view#1.uuid" and "server_id alone" in warning.what
    assert loaded(tmp_path, FIRST + ARCHIVE + ACCOUNT + VIEW + 'gtids = "anonymous"\n').warnings == ()


def test_views_wait_for_a_restart_and_accounts_do_not(tmp_path: Path) -> None:
    running = with_view(tmp_path, VIEW)
    assert waiting_for_restart(running, with_view(tmp_path, 'view = "gtid"\n' + VIEW)) == []
    assert waiting_for_restart(running, with_view(tmp_path, VIEW + 'engines = "innodb"\n')) == ["view"]
    assert waiting_for_restart(running, with_view(tmp_path, VIEW + ALL_KEYS)) == ["view"]
