"""Which CREATE DATABASE takes the server's collation: the target's must be the source's then."""

import pytest

from relay.view.rules.mariadb.status.status_translation import makes_schema_by_server_collation


@pytest.mark.parametrize(
    "text",
    [
        b"CREATE DATABASE d",
        b"create or replace schema d",
        b"/* app */ CREATE DATABASE d",
        b"-- app\nCREATE DATABASE d",
        b"--\nCREATE DATABASE d",
        b"# app\nCREATE /* new */ DATABASE d",
        b"/*!50000 CREATE DATABASE d */",
        b"CREATE DATABASE d COMMENT 'its charset is the server''s'",
        b'CREATE DATABASE d COMMENT "collate"',
        b"CREATE DATABASE `charset`",
        b"CREATE DATABASE d /* no charset */",
        b"CREATE DATABASE d -- no collate",
    ],
)
def test_one_that_names_no_character_set_wherever_the_words_are_otherwise(text: bytes) -> None:
    assert makes_schema_by_server_collation(text)


@pytest.mark.parametrize(
    "text",
    [
        b"CREATE DATABASE d CHARSET utf8mb4",
        b"CREATE DATABASE d DEFAULT CHARACTER  SET = 'utf8mb4'",
        b"CREATE DATABASE d COMMENT 'x' COLLATE utf8mb4_bin",
        b"CREATE DATABASE d /*!40100 DEFAULT CHARACTER SET latin1 */",
        b"CREATE TABLE d.t (a INT)",
        b"ALTER DATABASE d COMMENT 'x'",
        b"INSERT INTO t VALUES ('CREATE DATABASE d')",
    ],
)
def test_one_that_names_it_or_makes_something_else_does_not(text: bytes) -> None:
    assert not makes_schema_by_server_collation(text)
