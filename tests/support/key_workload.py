"""Random transactions on forty tables with every kind of key, foreign key and collation, from several connections at once.

The statements of a connection depend on the seed and its number alone. Their results do not: others interfere.
"""

import contextlib
import random
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pymysql
from pymysql.constants import CLIENT

from deploy.servers import Server

CONNECTIONS: Final = 8
DATABASE: Final = "keyed"
COLLATIONS: Final = (
    "latin1_swedish_ci",
    "utf8_general_ci",
    "utf8_unicode_ci",
    "utf8_bin",
    "utf8_roman_ci",
    "utf8_lithuanian_ci",
    "utf8_hungarian_ci",
    "binary",
)
# Equal in one of the collations and not in another: by case, accent, ligature, and letters that are one only together.
_LETTERS: Final = "aAáÄàäeEéêoOöÖøuUvViIjJyYcChznñNæÆßsSlx"
_TOKENS: Final = ("", *_LETTERS, "ss", "SS", "ch", "CH", "Ch", "cs", "CS", "ccs", "dz", "DZ", "dzs", "ae", "l\u00b7")
_KEYS: Final = 90
_ANY: Final = 40
_PREFIXED: Final = slice(13, 16)
_FIRST_NAMED: Final = 27
"""From this table on all have foreign keys, or are named by some."""
# Duplicate, parent, child, deadlock, lock wait; no such table, key or foreign key, or there is one already, while another connection
# renames and alters; cascades over more tables than MySQL 9.7 goes through.
_EXPECTED: Final = frozenset(
    (1022, 1025, 1050, 1051, 1061, 1062, 1091, 1146, 1205, 1213, 1216, 1217, 1305, 1412, 1451, 1452, 1761, 1762, 1826, 3780, 6575)
)  # fmt: skip
Chance = random.Random


@dataclass(frozen=True, slots=True)
class _Column:
    type: str
    value: Callable[[Chance], str]


@dataclass(frozen=True, slots=True)
class KeyedTable:
    """A table. `columns` are those that statements name; `keys` are the rest of the definition; `search` are columns by which rows are
    found. `replaced` allows REPLACE, which MySQL 9.7 does not handle soundly if others name the rows: it leaves them what CASCADE
    should remove."""

    name: str
    columns: dict[str, _Column]
    keys: Sequence[str]
    search: Sequence[str]
    replaced: bool = True

    @property
    def definition(self) -> str:
        """Return CREATE TABLE."""
        lines = [*(f"{name} {column.type}" for name, column in self.columns.items()), *self.keys]
        return f"CREATE TABLE {self.name} ({', '.join(lines)}) ENGINE=InnoDB"


@dataclass(frozen=True, slots=True)
class Work:
    """One transaction, or a statement that is one by itself. `at_error` is how it ends when one of its statements fails."""

    statements: tuple[str, ...]
    at_error: str = "COMMIT"


def keyed_tables(*, generated: bool = False) -> list[KeyedTable]:
    """Return the forty tables, parents before their children. With `generated` they have columns that MySQL 5.6 does not have."""
    tables = [_table(f"plain_{at}", {"id": _key()}, ["PRIMARY KEY (id)"]) for at in range(3)]
    if generated:
        kept = "g INT GENERATED ALWAYS AS (id % 50 + n) STORED"
        seen = "g VARCHAR(20) CHARACTER SET utf8 COLLATE utf8_bin GENERATED ALWAYS AS (LOWER(w)) VIRTUAL"
        text = {"id": _key(), "w": _text("utf8_general_ci", null=True)}
        tables[0] = _table("plain_0", text, ["PRIMARY KEY (id)", "UNIQUE KEY made ((CONCAT(LEFT(w, 1), n % 3)))"])
        tables[1] = _table("plain_1", {"id": _key()}, [kept, "PRIMARY KEY (id)", "UNIQUE KEY made (g)"])
        tables[2] = _table("plain_2", text, [seen, "PRIMARY KEY (id)", "UNIQUE KEY made (g)"])
    for at, collation in enumerate(COLLATIONS):
        tables.append(_table(f"text_{at}", {"k": _text(collation)}, ["PRIMARY KEY (k)"]))
    for at, collation in enumerate(("utf8_lithuanian_ci", "utf8_unicode_ci")):
        columns = {"id": _key(), "w": _text(collation, null=True)}
        tables.append(_table(f"word_{at}", columns, ["PRIMARY KEY (id)", "UNIQUE KEY (w)"]))
    for at, collation in enumerate(("utf8_unicode_ci", "latin1_swedish_ci", "binary")):
        columns = {"id": _key(), "w": _text(collation, null=True, blob=at > 0)}
        tables.append(_table(f"head_{at}", columns, ["PRIMARY KEY (id)", "UNIQUE KEY (w(1))"]))
    tables += [
        _table("none_0", {"a": _number(), "b": _text("utf8_general_ci", null=True)}, []),
        _table("none_1", {"a": _number(), "b": _number(null=True)}, ["KEY (b)"]),
        _table("pair_0", {"a": _number(9), "b": _text("utf8_general_ci")}, ["PRIMARY KEY (a, b)"]),
        _table("pair_1", {"a": _number(12), "b": _number(12)}, ["PRIMARY KEY (b, a)"]),
        _table("loose_0", {"u": _key(null=True), "v": _number()}, ["UNIQUE KEY (u)"]),
        _table("loose_1", {"u": _number(9, null=True), "v": _number(9, null=True)}, ["UNIQUE KEY (u, v)"]),
        _table(
            "many_0",
            {"id": _key(), "a": _key(null=True), "b": _number(12, null=True), "c": _number(12)},
            ["PRIMARY KEY (id)", "UNIQUE KEY (a)", "UNIQUE KEY (b, c)"],
        ),
        _table(
            "many_1",
            {"a": _key(), "b": _text("utf8_hungarian_ci"), "c": _key()},
            ["UNIQUE KEY (b)", "UNIQUE KEY (a)", "UNIQUE KEY (c)"],
        ),
        _table(
            "odd_0",
            {"d": _Column("DECIMAL(9,3) NOT NULL", _decimal), "f": _Column("DOUBLE NULL", _double)},
            ["PRIMARY KEY (d)", "UNIQUE KEY (f)"],
        ),
        _table(
            "odd_1",
            {
                "t": _Column("DATETIME(2) NOT NULL", _moment),
                "y": _Column("DATE NULL", _day),
                "e": _Column(_ENUM, _choice),
            },
            ["PRIMARY KEY (t)", "UNIQUE KEY (e, y)"],
        ),
        _table(
            "odd_2",
            {"b": _Column("BIT(7) NOT NULL", _bits), "c": _Column("BINARY(3) NOT NULL", _fixed)},
            ["PRIMARY KEY (b)", "UNIQUE KEY (c)"],
        ),
    ]
    for at, collation in enumerate(("utf8_general_ci", "utf8_roman_ci")):
        tables.append(
            _table(
                f"root_{at}",
                {"id": _key(), "code": _text(collation)},
                ["PRIMARY KEY (id)", "UNIQUE KEY (code)"],
            )
        )
    own = {"id": _key(), "p": _key(null=True), "k": _key(null=True)}
    unique = ["PRIMARY KEY (id)", "UNIQUE KEY (k)", "KEY (p)"]

    def refers(name: str, parent: str, rules: str, column: str = "p", to: str = "id") -> str:
        return f"CONSTRAINT {name} FOREIGN KEY ({column}) REFERENCES {parent} ({to}) {rules}"

    cascade = "ON DELETE CASCADE ON UPDATE CASCADE"
    set_null = "ON DELETE SET NULL ON UPDATE SET NULL"
    coded = {"id": _key(), "p": _text("utf8_general_ci", null=True), "k": _key(null=True)}
    tables += [
        _table("kept_0", own, [*unique, refers("kept", "root_0", "")]),
        _table("gone_0", own, [*unique, refers("gone", "root_0", cascade)]),
        _table("deep_0", own, [*unique, refers("deep", "gone_0", "ON DELETE CASCADE")]),
        _table("deep_1", own, [*unique, refers("deeper", "deep_0", set_null)]),
        _table("null_0", own, [*unique, refers("nulled", "root_1", set_null)]),
        _table("code_0", coded, [*unique, refers("coded", "root_0", "ON UPDATE CASCADE", to="code")]),
        _table("tree_0", own, [*unique, refers("tree_gone", "tree_0", "ON DELETE CASCADE")]),
        _table("tree_1", own, [*unique, refers("tree_null", "tree_1", "ON DELETE SET NULL")]),
        _table("tree_2", own, [*unique, refers("tree_kept", "tree_2", "")]),
        _table(
            "two_0",
            {**own, "q": _key(null=True)},
            [*unique, "KEY (q)", refers("two_p", "root_1", cascade), refers("two_q", "root_1", set_null, column="q")],
        ),
        _table(
            "wide_0",
            {"id": _key(), "x": _number(12, null=True), "y": _number(12, null=True)},
            ["PRIMARY KEY (id)", "KEY (x, y)", refers("wide", "pair_1", cascade, column="x, y", to="b, a")],
        ),
    ]
    assert len(tables) == 40, len(tables)
    named = re.findall(r"REFERENCES (\w+)", " ".join(key for table in tables for key in table.keys))
    return [replace(table, replaced=not generated or table.name not in named) for table in tables]


def works(seed: int, connection: int, *, generated: bool = False) -> Iterator[Work]:
    """Yield the transactions of a connection, without end."""
    chance = Chance(f"{seed} {connection}")
    tables = keyed_tables(generated=generated)
    while True:
        if connection == 0 and chance.random() < 0.01:
            yield Work((_definition(chance),))
        elif connection == 1 and chance.random() < 0.002:
            yield Work(
                ("SET binlog_format = STATEMENT", _told(chance), "SET binlog_format = ROW"), "SET binlog_format = ROW"
            )
        else:
            # More of those at the end, which name each other, and of those with keys of a prefix: few rows collide there.
            draw = chance.random()
            some = tables[_FIRST_NAMED:] if draw < 0.4 else tables[_PREFIXED] if draw < 0.5 else tables
            yield Work((_change(chance, chance.choice(some)),)) if chance.random() < 0.6 else _transaction(chance, some)


class KeyWorkload:
    """A database with the forty tables, recreated, and its writers."""

    def __init__(self, server: Server, seed: int, *, generated: bool = False, database: str = DATABASE) -> None:
        self._server, self._seed, self._generated, self._database = server, seed, generated, database
        self.failed: Counter[int] = Counter()
        self._trouble: list[BaseException] = []
        self._said: dict[int, Iterator[Work]] = {}
        server.execute_many(
            [
                f"CREATE DATABASE {database} DEFAULT CHARACTER SET utf8 COLLATE utf8_general_ci",
                f"USE {database}",
                *(table.definition for table in keyed_tables(generated=generated)),
                "CREATE TABLE told (id INT PRIMARY KEY, n INT) ENGINE=InnoDB",
                f"INSERT INTO told VALUES {', '.join(f'({n}, 0)' for n in range(20))}",
            ]
        )

    def run(self, transactions: int, connections: int = CONNECTIONS) -> None:
        """Run that many transactions, shared between the connections, after those of the last call; the source logs about half of them.

        Raises: AssertionError for an unexpected error.
        """
        share = [transactions // connections + (number < transactions % connections) for number in range(connections)]
        threads = [
            threading.Thread(target=self._connection, args=(number, count), name=f"connection {number}")
            for number, count in enumerate(share)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._trouble:
            raise self._trouble[0]

    def _connection(self, number: int, count: int) -> None:
        options = {"client_flag": CLIENT.MULTI_STATEMENTS}
        try:
            with contextlib.closing(self._server.connect(self._database, **options)) as link, link.cursor() as cursor:
                _run(cursor, "SET binlog_format = ROW, sql_mode = ''")
                said = self._said.setdefault(number, works(self._seed, number, generated=self._generated))
                for _ in range(count):
                    if self._trouble:
                        return
                    self._do(cursor, next(said))
        except BaseException as error:
            self._trouble.append(error)

    def _do(self, cursor: Any, work: Work) -> None:
        try:
            _run(cursor, "; ".join(work.statements))
        except pymysql.MySQLError as error:
            if error.args[0] not in _EXPECTED:
                raise AssertionError(f"the workload's own fault: {error} at {work.statements}") from error
            self.failed[error.args[0]] += 1
            _run(cursor, work.at_error)


def _run(cursor: Any, text: str) -> None:
    cursor.execute(text)
    while cursor.nextset():
        pass


# ---- statements ----------------------------------------------------------------------------------------------------------


def _transaction(chance: Chance, tables: Sequence[KeyedTable]) -> Work:
    said = ["BEGIN"]
    # Mostly of few tables, so that rows meet each other.
    near = chance.sample(tables, 3)
    for number in range(chance.randrange(2, 6)):
        said.append(_change(chance, chance.choice(near)))
        if chance.random() < 0.06:
            said += [f"SAVEPOINT s{number}", _change(chance, chance.choice(near)), f"ROLLBACK TO SAVEPOINT s{number}"]
    ends = "ROLLBACK" if chance.random() < 0.05 else "COMMIT"
    return Work((*said, ends), chance.choice(("COMMIT", "COMMIT", "ROLLBACK")))


def _change(chance: Chance, table: KeyedTable) -> str:
    draw = chance.random()
    if draw < 0.5:
        rows = [
            ", ".join(column.value(chance) for column in table.columns.values())
            for _ in range(chance.choice((1, 1, 1, 2, 4)))
        ]
        names, values = ", ".join(table.columns), "), (".join(rows)
        verb = chance.choice(("INSERT", "INSERT", "INSERT IGNORE", "REPLACE", "REPLACE"))
        if verb == "REPLACE" and not table.replaced:
            verb = "INSERT"
        said = f"{verb} INTO {table.name} ({names}) VALUES ({values})"
        if verb == "INSERT" and chance.random() < 0.6:
            said += f" ON DUPLICATE KEY UPDATE {_assignment(chance, table)}"
        return said
    sought = chance.choice(table.search)
    where = f"WHERE {sought} = {table.columns[sought].value(chance)}"
    if draw < 0.6:
        sought = chance.choice(table.search)
        where += f" OR {sought} = {table.columns[sought].value(chance)}"
    if draw < 0.8:
        set_to = ", ".join(_assignment(chance, table) for _ in range(chance.choice((1, 1, 2))))
        return f"UPDATE {chance.choice(('', 'IGNORE '))}{table.name} SET {set_to} {where}"
    return f"DELETE FROM {table.name} {where}"


def _assignment(chance: Chance, table: KeyedTable) -> str:
    name = chance.choice(list(table.columns))
    return f"{name} = {table.columns[name].value(chance)}"


def _told(chance: Chance) -> str:
    return f"UPDATE told SET n = n + {chance.randrange(100)} WHERE id = {chance.randrange(20)}"


def _definition(chance: Chance) -> str:
    return chance.choice(
        (
            "FLUSH LOGS",
            "FLUSH LOGS",
            "ALTER TABLE none_1 ADD UNIQUE KEY extra (a, b)",
            "ALTER TABLE none_1 DROP INDEX extra",
            "TRUNCATE TABLE none_0",
            "TRUNCATE TABLE none_1",
            "TRUNCATE TABLE loose_1",
            "RENAME TABLE text_1 TO moving, text_2 TO text_1, moving TO text_2",
            "ALTER TABLE two_0 DROP FOREIGN KEY two_q",
            "ALTER TABLE two_0 ADD CONSTRAINT two_q FOREIGN KEY (q) REFERENCES root_1 (id) ON DELETE SET NULL",
            "ALTER TABLE many_0 DROP INDEX a",
            "CREATE UNIQUE INDEX a ON many_0 (a)",
            f"CREATE TABLE later_{chance.randrange(3)} (id INT PRIMARY KEY, n INT)",
            f"DROP TABLE later_{chance.randrange(3)}",
        )
    )


# ---- columns -------------------------------------------------------------------------------------------------------------


def _table(name: str, columns: dict[str, _Column], keys: Sequence[str]) -> KeyedTable:
    """Return a table with a column and a BLOB that no key has."""
    more = {"n": _number(), "b0": _Column("BLOB NULL", _blob)}
    return KeyedTable(name, {**columns, **more}, keys, tuple(columns))


def _maybe(null: bool, value: Callable[[Chance], str]) -> Callable[[Chance], str]:
    return (lambda chance: "NULL" if chance.random() < 0.15 else value(chance)) if null else value


def _number(most: int = _ANY, *, null: bool = False) -> _Column:
    return _Column(f"INT {'NULL' if null else 'NOT NULL'}", _maybe(null, lambda chance: str(chance.randrange(most))))


def _key(*, null: bool = False) -> _Column:
    return _number(_KEYS, null=null)


def _text(collation: str, *, null: bool = False, blob: bool = False) -> _Column:
    ends = "NULL" if null else "NOT NULL"
    if collation == "binary":
        return _Column(f"{'BLOB' if blob else 'VARBINARY(20)'} {ends}", _maybe(null, _bytes))
    charset = collation.partition("_")[0]
    kind = f"{'TEXT' if blob else 'VARCHAR(12)'} CHARACTER SET {charset} COLLATE {collation} {ends}"
    return _Column(kind, _maybe(null, _word))


def _word(chance: Chance) -> str:
    return "'" + "".join(chance.choices(_TOKENS, k=2)) + " " * chance.choice((0, 0, 0, 1, 2)) + "'"


def _bytes(chance: Chance) -> str:
    return "X'" + ("".join(chance.choices(_TOKENS[1:9], k=2)).encode() + b"\0" * chance.choice((0, 0, 1))).hex() + "'"


def _decimal(chance: Chance) -> str:
    return f"{chance.randrange(-40, 40)}.{chance.choice(('0', '5', '125'))}"


def _double(chance: Chance) -> str:
    return chance.choice(("NULL", "0e0", "-0e0", f"{chance.randrange(-60, 60) / 8!r}", f"{chance.randrange(9)}e200"))


def _moment(chance: Chance) -> str:
    return f"'2014-03-02 01:02:{chance.randrange(60):02d}.{chance.randrange(4)}5'"


def _day(chance: Chance) -> str:
    return chance.choice(("NULL", f"'2014-{chance.randrange(1, 13):02d}-{chance.randrange(1, 29):02d}'"))


_ENUM: Final = "ENUM('one','two','three') NOT NULL"


def _choice(chance: Chance) -> str:
    return chance.choice(("'one'", "'two'", "'three'"))


def _bits(chance: Chance) -> str:
    return f"b'{chance.randrange(128):b}'"


def _fixed(chance: Chance) -> str:
    return f"X'{chance.randbytes(1).hex()[:1]}1{chance.choice(('', '00', '20', '41'))}'"


def _blob(chance: Chance) -> str:
    return chance.choice(("NULL", f"X'{chance.randbytes(chance.randrange(40)).hex()}'"))
