"""Random definitions of keys, foreign keys and collations, on real servers, and a comparison of what statements say with the servers'
answers.

python -m tests.support.key_histories --histories 20 [--steps 80] [--seed 1] [--servers mysql56,mysql97,mariadb,mariadb118]
"""

import argparse
import asyncio
import contextlib
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from deploy.servers import SERVERS, BinlogPosition, Server
from protocol.binlog.schema.collation_names import plain_collation
from protocol.sql.tables.source_table import Table, TableName
from relay.binlog_tables.plan.recorded import reported_schema
from relay.binlog_tables.plan.store import LocalStore
from relay.schema_history.table_agreement import keys_agree, tables_agree
from relay.upstream.schema.foreign_key_query import ForeignKeyQuery
from relay.upstream.schema.information_schema import schemas_of, tables_of
from relay.upstream.source.answer_bound import ORDINARY, AnswerBound
from tests.support.ddl_histories import DdlHistory, quoted, text

OPTIONS: Final = ("--binlog-format=ROW", "--character-set-server=latin1")
_TABLES: Final = ("k1", "k2", "k3", "odd `key", "küy")
_COLUMNS: Final = ("r1", "r2", "s", "x", "v")
_RULES: Final = ("RESTRICT", "NO ACTION", "CASCADE", "SET NULL", "SET DEFAULT")
_CHARSETS: Final = {
    "latin1": ("latin1_bin", "latin1_general_cs", "latin1_swedish_ci"),
    "utf8": ("utf8_bin", "utf8_unicode_ci", "utf8_general_ci"),
    "utf8mb4": ("utf8mb4_bin", "utf8mb4_unicode_ci", "utf8mb4_general_ci"),
    "cp1251": ("cp1251_bin",),
    "ucs2": ("ucs2_bin", "ucs2_unicode_ci"),
}
_STEPS_BETWEEN: Final = 4
# MySQL 5.6 forgets foreign keys in an ALTER that fails then, and logs none of it.
_HALF_DONE: Final = ("Error on rename of", "Table './")


@dataclass
class KeyHistory(DdlHistory):
    """A history of definitions only: rows that cascades change are not its subject."""

    def go_on(self, steps: int) -> Iterator[None]:
        """Run statements, one for each step."""
        for _ in range(steps):
            self._run(f"USE {self._random.choice(self._schemas)}")
            self._define(self._definition())
            if any(one in self.statements[-1] for one in _HALF_DONE):
                return
            self._look_at_tables()
            yield

    # ---- pieces ----

    def _pick(self, *choices: str) -> str:
        return self._random.choice(choices)

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _some_table(self) -> str:
        schema, table = self._random.choice(self._tables or [(self._schemas[0], "k1")])
        return f"{schema}.{quoted(table)}"

    def _new_name(self) -> str:
        return f"{self._random.choice(self._schemas)}.{quoted(self._random.choice(_TABLES))}"

    def _collating(self) -> str:
        charset = self._pick(*_CHARSETS)
        collation = self._pick(*_CHARSETS[charset])
        return self._pick("", f" CHARACTER SET {charset}", f" CHARACTER SET {charset} COLLATE {collation}")

    def _text_kind(self) -> str:
        charset = self._pick(*_CHARSETS)
        collation = self._pick(*_CHARSETS[charset])
        kind = self._pick("VARCHAR(8)", "VARCHAR(20)", "CHAR(12)", "VARCHAR(40)", "NCHAR(9)", "VARCHAR(9) ASCII")
        if "NCHAR" in kind or "ASCII" in kind:
            return kind + self._pick("", " BINARY")
        return kind + self._pick(
            "", self._collating(), f" COLLATE {collation}", " BINARY", f" CHARACTER SET {charset} BINARY"
        )

    def _definition_of(self, column: str) -> str:
        if column == "s":
            return self._text_kind()
        if column == "x":
            return self._pick("TEXT", "BLOB", "TINYTEXT", "VARBINARY(30)", "LONGTEXT") + (
                self._collating() if self._chance(0.1) else ""
            )
        if column == "v" and (self._new or self._mariadb):
            return f"INT GENERATED ALWAYS AS (id + 1) {self._pick('VIRTUAL', 'STORED')}"
        return "INT UNSIGNED"

    def _references(self) -> str:
        target = self._some_table() if self._chance(0.7) else self._new_name()
        if self._chance(0.2):
            target = target.split(".", 1)[1]  # in the schema of the table
        column = self._pick("(id)", "(id)", "(id)", "(r1)", "(`ID`)", "(r1, r2)" if self._chance(0.2) else "(id)")
        rules = "".join(f" ON {event} {self._pick(*_RULES)}" for event in ("DELETE", "UPDATE") if self._chance(0.4))
        return f"REFERENCES {target} {column}{self._pick('', '', ' MATCH SIMPLE')}{rules}"

    def _foreign_key(self) -> str:
        head = self._pick("", "", "CONSTRAINT ", f"CONSTRAINT {quoted(self._pick('f1', 'f2', 'F3', 'k1_ibfk_7'))} ")
        index = self._pick("", "", "ix ")
        references = self._references()
        columns = "(r1, r2)" if "(r1, r2)" in references else self._pick("(r1)", "(r2)", "(`R2`)")
        return f"{head}FOREIGN KEY {index}{columns} {references}"

    def _key(self) -> str:
        unique = self._pick("UNIQUE KEY", "UNIQUE", "UNIQUE INDEX", "KEY")
        name = self._pick("", "u1", "u2", "`U 3`")
        length = self._pick("2", "5", "8", "9", "12", "20", "30")
        parts = ["id", "r1", "r2", "s", f"s({length})", f"x({length})", "s(4) DESC", "r1 ASC"]
        if self._new:
            parts += ["(lower(s))", "((r1 + 1))", "(left(s, 3))"]
        chosen = self._random.sample(parts, self._random.randint(1, 3))
        chosen = [part if part.startswith("((") or not part.startswith("(") else f"({part})" for part in chosen]
        return f"{unique} {name} ({', '.join(chosen)})"

    # ---- statements ----

    def _definition(self) -> str:
        pick = self._random.random()
        if len(self._tables) < 3 or pick < 0.22:
            return self._create()
        if pick < 0.72:
            return self._alter_keys()
        checks = self._pick("SET foreign_key_checks=0;;{};;SET foreign_key_checks=1", "{}")
        if pick < 0.84:
            return checks.format(self._rename_tables())
        if pick < 0.90:
            return checks.format(f"DROP TABLE {self._some_table()}")
        if pick < 0.93:
            schema, default = self._random.choice(self._schemas), self._collating() or " COLLATE utf8_bin"
            return f"ALTER DATABASE {schema}{default}"
        if pick < 0.95:
            return f"CREATE TABLE {self._new_name()} LIKE {self._some_table()}"
        return self._pick(
            f"DROP INDEX {self._pick('u1', 'u2', 'f1', 'r1', 'ix')} ON {self._some_table()}",
            f"CREATE {self._key().replace('KEY', 'INDEX').replace('UNIQUE (', 'UNIQUE INDEX u1 (').replace('()', '')} ",
            f"TRUNCATE TABLE {self._some_table()}",
            f"CREATE UNIQUE INDEX u1 ON {self._some_table()} (s({self._pick('3', '8', '20')}), r1)",
        )

    def _create(self) -> str:
        inline = f" {self._references()}" if self._chance(0.2) else ""
        parts = [
            "id INT UNSIGNED NOT NULL PRIMARY KEY",
            f"r1 INT UNSIGNED{inline}",
            "r2 INT UNSIGNED",
            f"s {self._text_kind()}",
            f"x {self._definition_of('x')}",
        ]
        if self._chance(0.3):
            parts.append(f"v {self._definition_of('v')}")
        parts += [self._key() for _ in range(self._random.randint(0, 2))]
        if self._chance(0.5):
            parts.append("KEY (r1, r2)")
        if self._chance(0.6):
            parts += [self._foreign_key() for _ in range(self._random.randint(1, 2))]
        engine = self._pick(" ENGINE=InnoDB", " ENGINE=InnoDB", " ENGINE=InnoDB", "", " ENGINE=MyISAM")
        charset = self._pick(*_CHARSETS)
        both = (
            f" COLLATE {self._pick(*_CHARSETS[charset])} CHARSET {charset}" if self._chance(0.1) else self._collating()
        )
        words = "CREATE OR REPLACE TABLE" if self._mariadb and self._chance(0.1) else "CREATE TABLE"
        made = f"{words} {self._new_name()} ({', '.join(parts)}){engine}{both}"
        if self._chance(0.15):
            return f"SET foreign_key_checks=0;;{made};;SET foreign_key_checks=1"
        return made

    def _alter_keys(self) -> str:
        schema, table = self._random.choice(self._tables)
        clauses = [self._key_clause(schema, table) for _ in range(self._pick_number())]
        made = f"ALTER TABLE {schema}.{quoted(table)} {', '.join(clauses)}"
        if self._mariadb and not (table.isalnum() and table.isascii()) and " RENAME TO" in made:
            return "DROP TABLE IF EXISTS nowhere.nothing"  # see DdlHistory
        return f"SET foreign_key_checks=0;;{made};;SET foreign_key_checks=1" if self._chance(0.2) else made

    def _pick_number(self) -> int:
        return self._random.choice((1, 1, 1, 2, 2, 3))

    def _key_clause(self, schema: str, table: str) -> str:
        columns = [one.name for one in self._columns_of(schema, table)] or ["id"]
        old = self._random.choice(columns)
        pick = self._random.random()
        charset = self._pick(*_CHARSETS)
        if pick < 0.16:
            return f"ADD {self._foreign_key()}"
        if pick < 0.26:
            names = [name for name, _key in self._foreign_names(schema, table)] or ["f1"]
            name = quoted(self._random.choice(names))
            words = self._pick(
                "DROP FOREIGN KEY", "DROP FOREIGN KEY", "DROP CONSTRAINT" if self._new or self._mariadb else "DROP KEY"
            )
            return f"{words} {name}"
        if pick < 0.38:
            return f"ADD {self._key()}"
        if pick < 0.50:
            column = self._pick("s", "s", "x")
            return f"MODIFY {column} {self._definition_of(column)}"
        if pick < 0.58:
            new = self._pick(*_COLUMNS, "id", "s2")
            kind = self._definition_of(old) if old not in ("s2",) else self._text_kind()
            if (self._new or self._mariadb) and self._chance(0.6):
                return f"RENAME COLUMN {quoted(old)} TO {quoted(new)}"
            return f"CHANGE {quoted(old)} {quoted(new)} {kind}{' NOT NULL' if old == 'id' else ''}"
        if pick < 0.66:
            collation = self._pick("", f" COLLATE {self._pick(*_CHARSETS[charset])}")
            return f"CONVERT TO CHARACTER SET {charset}{collation}"
        if pick < 0.72:
            return f"DEFAULT CHARACTER SET {charset} COLLATE {self._pick(*_CHARSETS[charset])}"
        if pick < 0.78:
            column = self._pick(*_COLUMNS)
            return f"ADD COLUMN {column} {self._definition_of(column)}" + (
                f" {self._references()}" if column == "r1" and self._chance(0.4) else ""
            )
        if pick < 0.84:
            return f"DROP COLUMN {quoted(old)}"
        if pick < 0.90:
            return f"RENAME TO {self._new_name()}"
        return self._pick(
            "ENGINE=InnoDB", "ENGINE=MyISAM", "DROP PRIMARY KEY, ADD PRIMARY KEY (id, r1)", "DROP KEY u1", "DROP KEY r1", "FORCE",
            "DROP KEY u2", "DROP INDEX s",
        )  # fmt: skip

    def _foreign_names(self, schema: str, table: str) -> list[tuple[str, str]]:
        found = self._run(
            "SELECT CONSTRAINT_NAME, TABLE_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = "
            f"'{schema}' AND TABLE_NAME = '{table}'"
        )
        return [(text(row[0]), text(row[1])) for row in found]

    def _rename_tables(self) -> str:
        one, other = self._some_table(), self._some_table()
        if self._chance(0.4) and one != other:
            swap = f"{one.split('.')[0]}.swap"
            return f"RENAME TABLE {one} TO {swap}, {other} TO {one}, {swap} TO {other}"
        return f"RENAME TABLE {one} TO {self._new_name()}"


# ---- what the server says --------------------------------------------------------------------------------------------


class _Connection:
    """A connection that is queried as the relay queries."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def query(
        self, statement: str, timeout_s: float | None = None, bound: AnswerBound = ORDINARY
    ) -> list[tuple[Any, ...]]:
        with self._connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())


def asked_tables(server: Server, prefix: str) -> list[Table]:
    """Return the tables of the schemas with this prefix, as the relay sees them. Raises: AssertionError if InnoDB's list of foreign
    keys differs from information_schema's own."""

    async def ask(connection: Any) -> list[Table]:
        source = _Connection(connection)
        foreign = ForeignKeyQuery(source)
        found = []
        for schema in await schemas_of(source):
            if schema.startswith(prefix):
                tables = await tables_of(source, schema, foreign)
                told = await foreign._ask_dictionary(schema)
                for table in tables:
                    if table.engine == "InnoDB" and table.foreign_keys is not None:
                        other = told.get(table.name) or ()
                        assert dict(table.foreign_keys) == dict(other), (table, other)
                found += tables
        return found

    with contextlib.closing(server.connect(charset="utf8mb4")) as connection:
        return asyncio.run(ask(connection))


# ---- comparing -------------------------------------------------------------------------------------------------------


@dataclass
class KeyOutcome:
    """The result of a comparison. `known` says which facts of the tables statements give, and for how many they do not."""

    known: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, other: "KeyOutcome") -> None:
        """Add another result."""
        self.known.update(other.known)
        self.wrong += other.wrong


def compare_keys(found: Table | None, asked: Table, place: str) -> KeyOutcome:
    """Compare what statements say of a table with what the server says."""
    outcome = KeyOutcome()
    if found is None:
        outcome.known["tables not known"] += 1
        return outcome
    outcome.known["tables"] += 1
    if not tables_agree(found, asked):
        outcome.wrong.append(f"{place}: columns {found.columns}, not {asked.columns}")
        return outcome
    if not keys_agree(found, asked):
        outcome.wrong.append(
            f"{place}: keys {found.keys} {found.foreign_keys} {_collations(found)}, "
            f"not {asked.keys} {asked.foreign_keys} {_collations(asked)}"
        )
    default = (asked.charset.replace("utf8mb3", "utf8"), plain_collation(asked.collation))
    told = (found.charset or default[0], found.collation or default[1])
    if told != default:
        outcome.wrong.append(f"{place}: by default {told}, not {default}")
    for one, other in zip(found.columns, asked.columns, strict=True):
        if (one.generated, one.stored) != (other.generated, other.stored):
            outcome.wrong.append(f"{place}: {one}, not {other}")
        if other.collation:
            outcome.known["collations" if one.collation else "collations not known"] += 1
    for _name, key in found.keys:
        if key.unique:
            outcome.known["unique keys" if key.prefixes is not None else "unique keys not known"] += 1
    outcome.known["foreign keys not known" if found.foreign_keys is None else "foreign keys of tables"] += 1
    outcome.known["foreign keys"] += len(found.foreign_keys or ())
    return outcome


def _collations(table: Table) -> list[str]:
    return [column.collation for column in table.columns]


def run_history(server: Server, seed: int, steps: int) -> tuple[KeyHistory, KeyOutcome]:
    """Return a history, compared at every few statements."""
    server.sql("FLUSH BINARY LOGS")
    history = KeyHistory(server, seed)
    history.open()
    pictures: list[tuple[int, BinlogPosition, dict[TableName, Table]]] = []
    try:
        history.begin()
        for step, _ in enumerate(history.go_on(steps)):
            if step % _STEPS_BETWEEN == 0 or step + 1 == steps:
                tables = asked_tables(server, f"h{seed}_")
                named = {(table.schema, table.name): table for table in tables}
                pictures.append((len(history.statements), server.master_status(), named))
    finally:
        history.close()
    end = server.master_status()
    directory = server.binlogs()[0].parent
    schema = reported_schema(LocalStore(), str(directory), end.file, end.position)
    outcome = KeyOutcome()
    for number, place, asked in pictures:
        for (name, table), true in asked.items():
            found = schema.worked_out(name, table, place.file, place.position - 1)
            outcome.add(compare_keys(found, true, f"{name}.{table} behind statement {number}"))
    return history, outcome


def main() -> int:
    """Run histories; return 1 if something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--histories", type=int, default=10)
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--servers", default="mysql56,mysql97,mariadb,mariadb118")
    parser.add_argument("--show", type=int, default=3, help="differences that are shown of a history")
    options = parser.parse_args()
    failed = False
    for name in options.servers.split(","):
        total = KeyOutcome()
        with SERVERS[name]() as server:
            server.start(server_id=1, options=OPTIONS)
            for seed in range(options.seed, options.seed + options.histories):
                history, outcome = run_history(server, seed, options.steps)
                total.add(outcome)
                if outcome.wrong:
                    print(f"{name} seed {seed}:", *outcome.wrong[: options.show], sep="\n  ")
                    if options.histories == 1:
                        print(*(f"{number:4} {said}" for number, said in enumerate(history.statements, 1)), sep="\n")
        print(f"{name}: {dict(total.known)}; wrong {len(total.wrong)}", flush=True)
        failed = failed or bool(total.wrong)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
