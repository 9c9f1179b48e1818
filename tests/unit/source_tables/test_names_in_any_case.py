"""Names that differ in case alone: whatever the book says is true of a source that folds case, and of one that does not."""

import random
from dataclasses import dataclass, field

import pytest

from protocol.sql.statements.statement_names import defined_names
from protocol.sql.tables.source_table import TableName
from relay.schema_history.logged_definition import LoggedDefinition
from relay.source_tables.table_book import SourceTables
from relay.view.rules.statement.logged_query import LoggedQuery
from relay.view.rules.tables.definitions_learned import learn
from relay.view.rules.tables.table_engines import TableEngines

MYSQL = "8.0.36"
SCHEMAS = ("d", "D")
NAMES = [(schema, table) for schema in SCHEMAS for table in ("t", "T", "u")]
HISTORIES = 300
ACTIONS = (
    "create", "create", "create", "like", "drop", "drop", "rename", "alter rename", "add", "engine", "key", "create schema",
    "create schema", "drop schema", "charset", "view", "drop view", "unknown",
)  # fmt: skip


def apply(tables: SourceTables, *statements: str) -> SourceTables:
    for text in statements:
        if isinstance(tables, TableEngines):
            learn(tables, LoggedQuery(b"", text.encode(), 1, 0, b"d", b"", MYSQL))
        elif " VIEW " not in text:  # which the schema history does not get
            names = defined_names(text.encode(), 0)
            LoggedDefinition(names, text, "d", thread_id=1, server_charset="latin1", version=MYSQL).apply_to(tables)
    return tables


def columns(tables: SourceTables, name: TableName) -> list[str] | None:
    known = tables.get(name)
    return None if known is None else [column.name for column in known.columns]


@dataclass
class Made:
    """A table, or a view: then without columns."""

    columns: list[str]
    engine: str = "InnoDB"


@dataclass
class Server:
    """A source with lower_case_table_names = 1, or 0."""

    folds: bool
    schemas: dict[str, str] = field(default_factory=dict)
    """By name, the character set."""
    made: dict[TableName, Made] = field(default_factory=dict)

    def key(self, name: TableName) -> TableName:
        return (name[0].lower(), name[1].lower()) if self.folds else name

    def schema(self, name: str) -> str:
        return name.lower() if self.folds else name

    def table(self, name: TableName) -> Made | None:
        found = self.made.get(self.key(name))
        return found if found is not None and found.columns else None


class History:
    """Statements that succeed at a server. The tables that it has at first are older than the archive."""

    def __init__(self, chosen: random.Random, server: Server, *, learns_views: bool) -> None:
        self.chosen, self.server, self.learns_views = chosen, server, learns_views
        self.number = 0
        for schema in SCHEMAS:
            if chosen.random() < 0.5:
                server.schemas[server.schema(schema)] = "latin1"
        for name in NAMES:
            if server.schema(name[0]) in server.schemas and chosen.random() < 0.3:
                server.made[server.key(name)] = Made(["older"])

    def next(self) -> str:
        while True:
            text = self._tried()
            if text is not None:
                return text

    def _name(self) -> tuple[TableName, str]:
        name = self.chosen.choice(NAMES)
        return name, f"{name[0]}.{name[1]}"

    def _hides_view(self, name: TableName) -> bool:
        """Whether CREATE TABLE IF NOT EXISTS would find a view that the book does not learn: it takes that for the table."""
        return not self.learns_views and self.server.key(name) in self.server.made and self.server.table(name) is None

    def _tried(self) -> str | None:
        """None: the statement fails."""
        server, chosen = self.server, self.chosen
        name, text = self._name()
        other, other_text = self._name()
        key, other_key = server.key(name), server.key(other)
        has_schema = key[0] in server.schemas
        self.number += 1
        column = f"c{self.number}"
        maybe = chosen.random() < 0.4
        engine = chosen.choice(("InnoDB", "MyISAM"))
        match chosen.choice(ACTIONS):
            case "create":
                if not has_schema or (key in server.made and not maybe) or self._hides_view(name):
                    return None
                server.made.setdefault(key, Made([column], engine))
                return f"CREATE TABLE {'IF NOT EXISTS ' if maybe else ''}{text} ({column} INT) ENGINE={engine}"
            case "like":
                like = server.table(other)
                if not has_schema or like is None or (key in server.made and not maybe) or self._hides_view(name):
                    return None
                server.made.setdefault(key, Made(list(like.columns), like.engine))
                return f"CREATE TABLE {'IF NOT EXISTS ' if maybe else ''}{text} LIKE {other_text}"
            case "drop":
                if server.table(name) is None and not (maybe and key not in server.made):
                    return None
                server.made.pop(key, None)
                return f"DROP TABLE {'IF EXISTS ' if maybe else ''}{text}"
            case "rename" | "alter rename" as how:
                if key not in server.made or other_key in server.made or other_key[0] not in server.schemas:
                    return None
                if not server.made[key].columns and key[0] != other_key[0]:
                    return None
                server.made[other_key] = server.made.pop(key)
                return (
                    f"RENAME TABLE {text} TO {other_text}"
                    if how == "rename"
                    else f"ALTER TABLE {text} RENAME TO {other_text}"
                )
            case "add" | "engine" | "key" as how:
                table = server.table(name)
                if table is None:
                    return None
                if how == "add":
                    table.columns.append(column)
                    return f"ALTER TABLE {text} ADD {column} INT"
                if how == "engine":
                    table.engine = engine
                    return f"ALTER TABLE {text} ENGINE={engine}"
                return f"ALTER TABLE {text} ADD FOREIGN KEY ({table.columns[0]}) REFERENCES d.p (id)"
            case "create schema":
                if has_schema and not maybe:
                    return None
                server.schemas.setdefault(key[0], "latin2")
                return f"CREATE DATABASE {'IF NOT EXISTS ' if maybe else ''}{name[0]} CHARACTER SET latin2"
            case "drop schema":
                if not has_schema and not maybe:
                    return None
                server.schemas.pop(key[0], None)
                for one in [one for one in server.made if one[0] == key[0]]:
                    del server.made[one]
                return f"DROP DATABASE {'IF EXISTS ' if maybe else ''}{name[0]}"
            case "charset":
                if not has_schema:
                    return None
                server.schemas[key[0]] = charset = chosen.choice(("latin1", "latin2"))
                return f"ALTER DATABASE {name[0]} CHARACTER SET {charset}"
            case "view":
                if not has_schema or key in server.made:
                    return None
                server.made[key] = Made([])
                return f"CREATE VIEW {text} AS SELECT 1"
            case "drop view":
                if key not in server.made or server.table(name) is not None:
                    return None
                del server.made[key]
                return f"DROP VIEW {text}"
            case _:
                if server.table(name) is None:
                    return None
                server.table(name).columns.append(column)  # type: ignore[union-attr]
                return f"ALTER TABLE {text} FROBNICATE {column}"


def untruths(tables: SourceTables, server: Server) -> list[str]:
    """What the book says that is wrong. A question about a table that does not exist, after a statement on it, is none."""
    found = ["it folds"] if tables.folds and not server.folds else []
    for name in NAMES:
        made, table = server.made.get(server.key(name)), server.table(name)
        if table is not None and columns(tables, name) not in (None, [], table.columns):
            found.append(f"{name} has {columns(tables, name)}, not {table.columns}")
        if made is None and tables.exact(name) is not None:
            found.append(f"{name} is a table")
        exists = tables.exists(name)
        if (
            exists is not None
            and exists != (made is not None)
            and (tables.learns_views or made is None or table is not None)
        ):
            found.append(f"{name} exists: {exists}")
        if isinstance(tables, TableEngines) and table is not None:
            facts = tables.facts(name)
            if facts is not None and facts.engine not in ("?", table.engine):
                found.append(f"{name} is of {facts.engine}, not {table.engine}")
    for schema in SCHEMAS:
        charset = server.schemas.get(server.schema(schema))
        if tables.schema_exists(schema) not in (None, charset is not None):
            found.append(f"{schema} exists: {tables.schema_exists(schema)}")
        if charset is not None and tables.charset_of(schema)[0] not in ("", charset):
            found.append(f"{schema} has {tables.charset_of(schema)}, not {charset}")
    return found


@pytest.mark.parametrize("folds", [False, True], ids=["lower_case_table_names = 0", "lower_case_table_names = 1"])
@pytest.mark.parametrize("kind", [SourceTables, lambda: TableEngines({"*": "InnoDB"})], ids=["history", "MySQL's view"])
def test_what_the_book_says_is_true_of_a_source_that_folds_case_or_does_not(
    kind: type[SourceTables], folds: bool
) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")  # pytest shows it when the test fails
    chosen = random.Random(seed)
    for _ in range(HISTORIES):
        tables, statements = kind(), []
        history = History(chosen, Server(folds), learns_views=tables.learns_views)
        for _ in range(chosen.randrange(2, 9)):
            statements.append(history.next())
            apply(tables, statements[-1])
            assert untruths(tables, history.server) == [], "; ".join(statements)


def engine(tables: TableEngines, name: TableName) -> str | None:
    facts = tables.facts(name)
    return None if facts is None else facts.engine


@pytest.mark.parametrize(
    "text",
    ["ALTER TABLE D.u ADD z INT", "DROP TABLE D.u", "RENAME TABLE D.u TO D.w", "CREATE TABLE p LIKE D.u"],
)
def test_a_table_of_an_older_schema_is_not_taken_for_one_of_a_schema_that_differs_in_case(text: str) -> None:
    tables = apply(SourceTables(), "CREATE DATABASE d", "CREATE TABLE u (a INT)", text)
    assert not tables.folds
    assert columns(tables, ("d", "u")) in (None, ["a"])
    assert columns(tables, ("d", "p")) is columns(tables, ("D", "w")) is None


def test_a_view_of_mysql_does_not_take_the_engine_of_a_schema_that_differs_in_case() -> None:
    tables = TableEngines()
    apply(tables, "CREATE DATABASE d", "CREATE TABLE u (a INT) ENGINE=MyISAM")
    assert engine(tables, ("D", "u")) is None
    apply(tables, "ALTER TABLE D.u ENGINE=InnoDB")
    assert engine(tables, ("D", "u")) == "InnoDB"
    assert engine(tables, ("d", "u")) is None


def test_dropping_a_schema_doubts_the_tables_of_one_that_differs_in_case() -> None:
    statements = (
        "CREATE DATABASE d",
        "CREATE TABLE t (a INT)",
        "DROP DATABASE D",
        "CREATE DATABASE D",
        "CREATE TABLE D.t (b INT)",
    )
    tables = apply(SourceTables(), *statements)
    assert (columns(tables, ("d", "t")), columns(tables, ("D", "t"))) == (None, ["b"])


def test_nobody_knows_whether_a_removed_name_exists_while_another_differs_in_case() -> None:
    tables = apply(SourceTables(), "RENAME TABLE T TO old", "CREATE TABLE t (a INT)")
    assert tables.exists(("d", "T")) is None
    apply(tables, "CREATE TABLE IF NOT EXISTS T (a INT)", "ALTER TABLE T ADD b INT")
    assert columns(tables, ("d", "t")) in (None, ["a", "b"])


@pytest.mark.parametrize("rename", ["RENAME TABLE T TO w", "ALTER TABLE T RENAME TO w"])
def test_the_schema_history_takes_no_view_for_a_table_whose_name_differs_in_case(rename: str) -> None:
    tables = apply(SourceTables(), "CREATE DATABASE d", "CREATE TABLE t (a INT)", "CREATE VIEW T AS SELECT 1", rename)
    assert not tables.folds
    assert (columns(tables, ("d", "t")), columns(tables, ("d", "w"))) == (None, None)


def test_a_table_that_the_source_reports_missing_says_nothing_of_how_it_compares_names() -> None:
    tables = apply(SourceTables(), "CREATE DATABASE d", "CREATE TABLE t (a INT)")
    tables.note_missing(("d", "T"))
    assert not tables.folds
    assert tables.exists(("d", "t")) is None
    assert tables.exists(("d", "T")) is False


def test_a_foreign_key_of_a_name_in_another_case_leaves_the_engine_known() -> None:
    tables = TableEngines()
    apply(
        tables, "CREATE TABLE Orders (a INT) ENGINE=MyISAM", "ALTER TABLE orders ADD FOREIGN KEY (a) REFERENCES p (id)"
    )
    assert engine(tables, ("d", "Orders")) == "MyISAM"


def test_create_like_that_finds_the_table_leaves_it_as_it_is() -> None:
    tables = TableEngines()
    apply(
        tables,
        "CREATE TABLE t (a INT) ENGINE=MyISAM",
        "CREATE TABLE u (a INT) ENGINE=InnoDB",
        "CREATE TABLE IF NOT EXISTS t LIKE u",
    )
    assert engine(tables, ("d", "t")) == "MyISAM"


def test_a_doubtful_table_has_no_engine_that_is_configured_for_all_older_tables() -> None:
    tables = TableEngines({"*": "InnoDB"})
    apply(tables, "CREATE TABLE t (a INT) ENGINE=MyISAM", "DROP TABLE T")
    assert engine(tables, ("d", "t")) is None


def test_temporary_tables_that_are_taken_back_are_kept_as_before() -> None:
    tables = apply(SourceTables(), "CREATE TEMPORARY TABLE a (x INT)", "CREATE TEMPORARY TABLE b (x INT)")
    before = tables.state()
    tables.begin()
    apply(tables, "DROP TEMPORARY TABLE a")
    tables.take_back()
    assert tables.state() == before
