"""The lists of words that MySQL 9.7 reads otherwise than MariaDB, asked of the servers themselves."""

import contextlib
from collections.abc import Iterable

import pymysql
import pytest

from deploy.servers import Server
from protocol.sql.engines import names_of_engines
from relay.view.rules.mariadb.statement.mysql_words import (
    MISSING_FUNCTIONS,
    MISSING_SINCE_9_6,
    RESERVED_WORDS,
    SEQUENCE_FUNCTIONS,
)
from tests.conftest import ServerFactory

pytestmark = pytest.mark.interop
SYNTAX_ERROR, NO_FUNCTION = 1064, 1305
_TAKES_TEXTS = {"JSON_VALUE"}
"""MySQL's grammar has it, with a text for its path."""


@pytest.fixture(scope="module")
def mysql(module_servers: ServerFactory) -> Server:
    return module_servers("mysql97").start(server_id=2)


@pytest.fixture(scope="module", params=["mariadb", "mariadb118"])
def mariadb(request: pytest.FixtureRequest, module_servers: ServerFactory) -> Server:
    return module_servers(request.param).start(server_id=1)


def refused(server: Server, statements: Iterable[tuple[str, str]]) -> set[str]:
    """Of (name, statement) the names whose statements end with a syntax error, or that no function has."""
    found = set()
    with contextlib.closing(server.connect("mysql")) as connection, connection.cursor() as cursor:
        for name, statement in statements:
            try:
                cursor.execute(statement)
                cursor.fetchall()
            except pymysql.MySQLError as error:
                if error.args[0] in (SYNTAX_ERROR, NO_FUNCTION):
                    found.add(name)
    return found


def lacking(server: Server, names: set[str]) -> set[str]:
    """Functions that the server has not, whatever arguments they are given."""
    wrong = dict.fromkeys(names, 0)
    for arguments in ("", "1", "1, 1", "1, 1, 1"):
        for name in refused(server, [(name, f"SELECT {name}({arguments})") for name in names]):
            wrong[name] += 1
    return {name for name, count in wrong.items() if count == 4}


def test_every_function_that_only_mariadb_has_is_listed(mysql: Server, mariadb: Server) -> None:
    names = {name for (name,) in mariadb.sql("SELECT UPPER(FUNCTION) FROM information_schema.SQL_FUNCTIONS")}
    assert len(names) > 200
    only_mariadb = lacking(mysql, names) - lacking(mariadb, names)
    assert only_mariadb - MISSING_FUNCTIONS - MISSING_SINCE_9_6 - SEQUENCE_FUNCTIONS == _TAKES_TEXTS


def test_no_function_is_listed_that_mysql_has(mysql: Server) -> None:
    listed = set(MISSING_FUNCTIONS | MISSING_SINCE_9_6)
    assert lacking(mysql, listed) == listed


def test_every_bare_name_that_only_mysql_has_reserved_is_listed(mysql: Server, mariadb: Server) -> None:
    words = {
        word
        for (word,) in mariadb.sql(
            "SELECT UPPER(WORD) FROM information_schema.KEYWORDS WHERE WORD REGEXP '^[A-Za-z_]+$'"
        )
    }
    words |= {word for (word,) in mysql.sql("SELECT WORD FROM information_schema.KEYWORDS")}
    tried = [
        (word, f"SELECT 1 FROM (SELECT 1 AS a) AS x WHERE 0 AND (SELECT {word} FROM (SELECT 1 AS `{word}`) AS y)")
        for word in words
    ]
    only_mysql = refused(mysql, tried) - refused(mariadb, tried)
    assert only_mysql - RESERVED_WORDS == set()
    assert words >= RESERVED_WORDS


def test_the_engines_that_are_kept_are_mysqls(mysql: Server) -> None:
    engines = {engine.upper() for (engine,) in mysql.sql("SELECT ENGINE FROM information_schema.ENGINES")}
    kept = names_of_engines(lambda engine: engine.in_mysql)
    assert {name.upper() for name in kept} - {"INNOBASE", "HEAP", "MERGE"} <= engines
