"""Foreign keys as old and new sources tell them, and what becomes of sources that do not."""

from collections.abc import Sequence
from typing import Any

import pymysql.err
import pytest

from protocol.sql.tables.source_table import ForeignKey, Key
from relay.upstream.schema import foreign_key_query
from relay.upstream.schema.foreign_key_query import ForeignKeyQuery
from relay.upstream.schema.information_schema import tables_of
from relay.upstream.source.answer_bound import ORDINARY, AnswerBound

NEW, OLD = "9.7.0", "5.6.24-log"
KEY = ForeignKey(("a", "b"), "o", "tüb", ("x", "y"), "CASCADE", "SET NULL")


class Source:
    """Answers by the first word that is in a statement; an exception is raised."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked: list[str] = []

    async def query(
        self, statement: str, timeout_s: float | None = None, bound: AnswerBound = ORDINARY
    ) -> list[tuple[Any, ...]]:
        self.asked.append(statement)
        for word, answer in self.answers.items():
            if word.replace("_V", " V") in statement:
                if isinstance(answer, Exception):
                    raise answer
                return list(answer)
        return []


def innodb(*keys: Sequence[object], **other: Any) -> Source:
    columns = (
        (key[0], place, column, referenced)
        for key in keys
        for place, column, referenced in ((1, "b", "y"), (0, "a", "x"))
    )
    return Source(SELECT_VERSION=[(OLD,)], INNODB_SYS_FOREIGN_COLS=list(columns), INNODB_SYS_FOREIGN=keys, **other)


async def test_new_servers_are_asked_schema_by_schema() -> None:
    source = Source(
        SELECT_VERSION=[(NEW,)],
        KEY_COLUMN_USAGE=[("t", "f", 2, "b", "o", "tüb", "y"), ("t", "f", 1, "a", "o", "tüb", "x")],
        REFERENTIAL_CONSTRAINTS=[("t", "f", "CASCADE", "SET NULL")],
    )
    assert await ForeignKeyQuery(source).of_schema("d") == {"t": (("f", KEY),)}
    assert all("'d'" in one for one in source.asked[2:])


async def test_old_servers_are_asked_once_for_all_schemas_and_open_no_table() -> None:
    source = innodb((b"d/f", b"d", "t", "o", "tüb", 1 + 8, "o/t@1ob"))
    query = ForeignKeyQuery(source)
    assert await query.of_schema("d") == {"t": (("f", KEY),)}
    assert await query.of_schema("e") == {}
    assert len(source.asked) == 4
    assert not any("REFERENTIAL_CONSTRAINTS" in one or "KEY_COLUMN_USAGE" in one for one in source.asked)


@pytest.mark.parametrize(
    ("kind", "rules"), [(0, ("RESTRICT", "RESTRICT")), (2 + 4, ("SET NULL", "CASCADE")), (48, ("NO ACTION",) * 2)]
)
async def test_the_rules_of_old_servers_are_bits(kind: int, rules: tuple[str, str]) -> None:
    found = await ForeignKeyQuery(innodb(("d/f", "d", "t", "d", "p", kind, "d/p"))).of_schema("d")
    assert found is not None
    (((_name, key),),) = filter(None, found.values())
    assert (key.on_delete, key.on_update) == rules


async def test_a_parents_name_that_is_none_of_a_file_makes_the_foreign_keys_of_its_child_unknown() -> None:
    source = innodb(("d/f", "d", "t", "d", "odd", 0, "d/#mysql50#odd `key"), ("d/g", "d", "u", "d", "p", 0, "d/p"))
    found = await ForeignKeyQuery(source).of_schema("d")
    assert found is not None
    assert (found["t"], found["u"] is None) == (None, False)


@pytest.mark.parametrize(
    ("error", "lacks"), [((1227, "Access denied; you need PROCESS"), True), ((1109, "Unknown table"), False)]
)
async def test_a_source_that_does_not_tell_says_why(error: tuple[int, str], lacks: bool) -> None:
    query = ForeignKeyQuery(Source(SELECT_VERSION=[(OLD,)], INNODB_SYS_FOREIGN=pymysql.err.OperationalError(*error)))
    assert await query.of_schema("d") is None
    assert (bool(query.refusal), query.lacks_privilege) == (True, lacks)


async def test_more_foreign_keys_than_are_held_are_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign_key_query, "MOST_FOREIGN_KEYS", 1)
    query = ForeignKeyQuery(innodb(*[(f"d/f{n}", "d", "t", "d", "p", 0, "d/p") for n in range(2)]))
    assert await query.of_schema("d") is None
    assert "more than 1" in query.refusal


async def test_the_tables_of_a_schema_have_prefixes_expressions_and_foreign_keys_or_are_known_to_have_none() -> None:
    source = Source(
        SELECT_VERSION=[(OLD,)],
        INNODB_SYS_FOREIGN=pymysql.err.OperationalError(1227, "Access denied"),
        STATISTICS=[("t", "k", 2, None, 0, None), ("t", "k", 1, "a", 0, 10)],
        COLUMNS=[
            ("t", 1, "a", "varchar(30)", "utf8mb4", "utf8mb4_bin", "YES", "", None),
            ("m", 1, "a", "int", None, None, "NO", "", None),
        ],
        TABLES=[("t", "InnoDB", "utf8mb4_bin", "BASE TABLE"), ("m", "MyISAM", "latin1_bin", "SYSTEM VERSIONED")],
    )
    memory, inno = await tables_of(source, "d", ForeignKeyQuery(source))
    assert (memory.foreign_keys, inno.foreign_keys) == ((), None)
    assert dict(inno.keys) == {"k": Key(("a", ""), True, (10, None))}
    assert (inno.charset, inno.collation) == ("utf8mb4", "utf8mb4_bin")


async def test_a_relay_has_neither_prefixes_nor_foreign_keys_nor_default_collations_and_so_they_are_not_known() -> None:
    source = Source(
        STATUS=[("Binlog_relay_uptime", "5")],
        STATISTICS=[("t", "k", 1, "a", 0, None)],
        COLUMNS=[("t", 1, "a", "varchar(30)", "utf8mb4", "utf8mb4_bin", "YES", "", None)],
        TABLES=[("t", "InnoDB", "utf8mb4_bin", "BASE TABLE")],
    )
    (table,) = await tables_of(source, "d", ForeignKeyQuery(source))
    assert (table.foreign_keys, table.collation, table.columns[0].collation) == (None, "", "utf8mb4_bin")
    assert dict(table.keys) == {"k": Key(("a",), True)}
