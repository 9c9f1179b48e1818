"""What `protocol/sql` says of words, functions and engines, asked of the servers themselves."""

import contextlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import pymysql
import pytest

from deploy.servers import Server
from protocol.errors import ErrorCode
from protocol.sql.engines import names_of_engines
from protocol.sql.server_functions import SERVER_FUNCTIONS
from protocol.sql.server_version import KnownSince, version_numbers
from protocol.sql.server_words import RESERVED_WORDS
from tests.conftest import ServerFactory

pytestmark = pytest.mark.interop

_UNKNOWN: Final = (
    ErrorCode.ER_PARSE_ERROR,
    ErrorCode.ER_SP_DOES_NOT_EXIST,
    ErrorCode.ER_WRONG_PARAMETERS_TO_STORED_FCT,
    ErrorCode.ER_FUNC_INEXISTENT_NAME_COLLISION,
)
_CALLS: Final = (
    *(f"SELECT {{0}}({', '.join('1' * count)})" for count in range(5)),
    "SELECT {0}() OVER ()",
    "SELECT {0}(1) OVER ()",
    "SELECT {0}(1, 1) OVER ()",
    "SELECT {0}('{{}}', '$.a')",
    "SELECT {0}('a':1)",
    "SELECT {0}(1 AS SIGNED)",
    "SELECT {0}('a', 'b' AS INT)",
    "SELECT {0}(1 USING utf8)",
    "SELECT {0}(1 IN (1))",
    "SELECT {0}(DAY FROM 1)",
    "SELECT {0}(DATE, '')",
    "SELECT {0}(DAY, 1, 1)",
    "SELECT {0}(1, INTERVAL 1 DAY)",
    "SELECT {0}(Host) FROM user",
    "SELECT {0}(Host) AGAINST ('a') FROM user",
    "SELECT {0}(1) WITHIN GROUP (ORDER BY Host) OVER () FROM user",
    "SELECT * FROM {0}('[1]', '$[*]' COLUMNS (a INT PATH '$')) AS t",
)
"""A function that the server has is known with one of these arguments at least."""
_MAY_NOT_BE_CALLED: Final = re.compile("INTERNAL_|CAN_ACCESS_|GET_DD_|IS_VISIBLE_DD_OBJECT")
"""MySQL's own functions for information_schema: error 3566 for everybody."""


@pytest.fixture(scope="module")
def every(module_servers: ServerFactory) -> list[Server]:
    mysql97 = module_servers("mysql97").start(server_id=1, options=["--performance-schema=ON"])
    others = [module_servers(name).start(server_id=2) for name in ("mysql56", "mariadb", "mariadb118")]
    return [mysql97, *others]


@contextlib.contextmanager
def prepared(server: Server) -> Iterator[pymysql.cursors.Cursor]:
    with contextlib.closing(server.connect("mysql")) as connection, connection.cursor() as cursor:
        yield cursor


def is_understood(cursor: pymysql.cursors.Cursor, statement: str) -> bool:
    """Whether the server reads the statement, and has the functions in it; it is not run."""
    try:
        cursor.execute("PREPARE statement FROM %s", (statement,))
    except pymysql.MySQLError as error:
        return error.args[0] not in _UNKNOWN
    return True


def expected(known: KnownSince, server: Server) -> bool:
    version = server.sql("SELECT VERSION()")[0][0]
    series = version_numbers(version)[:2]
    return known.in_mariadb(series) if "MariaDB" in version else known.in_mysql(series)


def keywords_of(servers: Iterable[Server]) -> set[str]:
    """5.6 has no list of its own."""
    return {
        word.upper()
        for server in servers
        if server.sql("SHOW TABLES FROM information_schema LIKE 'KEYWORDS'")
        for (word,) in server.sql("SELECT WORD FROM information_schema.KEYWORDS")
        if word.isidentifier()
    }


def test_the_words_that_not_all_reserve_are_listed_with_those_that_do(every: list[Server]) -> None:
    words = keywords_of(every) | set(RESERVED_WORDS)
    assert len(words) > 800
    reserved = {}
    for server in every:
        with prepared(server) as cursor:
            reserved[server] = {word for word in words if not is_understood(cursor, f"CREATE TABLE k ({word} INT)")}
    by_all = set.intersection(*reserved.values())
    for server, found in reserved.items():
        listed = {word for word, known in RESERVED_WORDS.items() if expected(known, server)}
        assert found - by_all == listed, server


def test_each_function_exists_where_it_is_said_to(every: list[Server]) -> None:
    for server in every:
        has = {name for name, known in SERVER_FUNCTIONS.items() if expected(known, server)}
        with prepared(server) as cursor:
            found = {
                name for name in SERVER_FUNCTIONS if any(is_understood(cursor, call.format(name)) for call in _CALLS)
            }
        assert found == has, server


def test_no_function_that_a_server_names_is_missing(every: list[Server]) -> None:
    """MariaDB lists its own; the help of all has most of their names."""
    for server in every:
        names = {name.upper() for (name,) in server.sql("SELECT name FROM mysql.help_topic")}
        if server.sql("SHOW TABLES FROM information_schema LIKE 'SQL_FUNCTIONS'"):
            names |= {name.upper() for (name,) in server.sql("SELECT FUNCTION FROM information_schema.SQL_FUNCTIONS")}
        with prepared(server) as cursor:
            unlisted = {
                name
                for name in names - set(SERVER_FUNCTIONS)
                if name.isidentifier() and not _MAY_NOT_BE_CALLED.match(name) and is_called(cursor, name)
            }
        assert unlisted <= {"INTERVAL", "ROW", "VALUES"}, server


def is_called(cursor: pymysql.cursors.Cursor, name: str) -> bool:
    return any(is_understood(cursor, call.format(name)) for call in _CALLS[:7])


def test_the_engines_that_are_kept_are_mysqls(every: list[Server]) -> None:
    engines = {engine.upper() for (engine,) in every[0].sql("SELECT ENGINE FROM information_schema.ENGINES")}
    kept = names_of_engines(lambda engine: engine.in_mysql)
    assert {name.upper() for name in kept} - {"INNOBASE", "HEAP", "MERGE"} <= engines


def test_errors_have_the_names_of_the_servers(every: list[Server]) -> None:
    """MySQL 9.7 shows its names, 5.6 has them in a file; from 1900 on MariaDB has numbers of its own."""
    names: dict[int, set[str]] = {}
    for number, name in every[0].sql(
        "SELECT ERROR_NUMBER, ERROR_NAME FROM performance_schema.events_errors_summary_global_by_error"
    ):
        names.setdefault(number, set()).add((name or "").replace("_REPLICA_", "_SLAVE_"))
    texts = every[1].sql("SELECT @@lc_messages_dir")[0][0]
    number = 1000
    for line in (Path(texts) / "errmsg-utf8.txt").read_text(errors="replace").splitlines():
        if found := re.match(r"(?:ER|WARN)_\w+", line):
            names.setdefault(number, set()).add(found[0])
            number += 1
    wrong = {error.name: names[error] for error in ErrorCode if error in names and error.name not in names[error]}
    assert set(wrong) == {"ER_SLAVE_SAME_ID", "ER_ACCOUNT_HAS_BEEN_LOCKED_MARIADB"}, wrong
