"""The kernel's quick look at a change of rows is held to the reader of SQL: the same one table, and no order of rows that counts."""

import contextlib
from collections.abc import Iterator
from typing import Final

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[feed]'")

from protocol.kernel.codes import VIEW_WATCHED
from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.statements.named_tables import perhaps_written_tables, read_tables
from protocol.sql.statements.order_dependence import order_counts, searches_text, verb_of
from protocol.sql.statements.statement import StatementText
from tests.sql_verdicts.corpus import kept_statements
from tests.sql_verdicts.readers import HISTORY, SCHEMA
from tests.support.kernel_builds import uncompiled_kernel

_EVERY: Final = 3
_BASIS, _PRIME, _MASK = 2166136261, 16777619, 0xFFFFFFFF


def number_of(name: str) -> int:
    """FNV-1a of a table's name in lower case, as the kernel numbers tables."""
    number = _BASIS
    for byte in name.lower().encode():
        number = (number ^ byte) * _PRIME & _MASK
    return number % VIEW_WATCHED


@pytest.fixture(scope="module")
def targets() -> dict[bytes, int]:
    """The statements of the corpus that the quick look takes for changes of one table, with its number."""
    look = uncompiled_kernel().view_copy.__dict__["simple_target"]
    chosen = [said.statement for said in kept_statements()[::_EVERY] if HISTORY not in said.statement]
    found = {statement: look(statement, 0, len(statement)) for statement in chosen}
    return {statement: number for statement, number in found.items() if number >= 0}


def test_the_kernel_takes_many_statements_for_changes_of_one_table(targets: dict[bytes, int]) -> None:
    assert len(targets) > 100


def queries(targets: dict[bytes, int]) -> Iterator[StatementText]:
    """Those that a server takes, of clients of any character set: the corpus has broken ones, too.

    Without INSERT … TABLE of MySQL 8.0.19 and later: `ViewCopy` looks for that word before it asks `simple_target`.
    """
    for statement in filter(bytes.isascii, targets):
        query = StatementText(statement, SCHEMA, server_version="5.6.24-log")
        with contextlib.suppress(UnsupportedSyntax):
            if all(token.upper != "TABLE" for token in query.tokens):
                yield query


def test_the_table_of_a_plain_change_is_the_one_that_the_reader_finds(targets: dict[bytes, int]) -> None:
    differing = []
    for query in queries(targets):
        tables = perhaps_written_tables(query)
        if [number_of(name) for _schema, name in tables] != [targets[query.raw]]:
            differing.append((query.raw, tables))
    assert differing == []


def test_a_plain_change_does_not_depend_on_the_order_of_rows(targets: dict[bytes, int]) -> None:
    found = [one for one in queries(targets) if order_counts(one, makes_numbers=True) or searches_text(one)]
    # The rows of VALUES come in one order only.
    assert [one.raw for one in found if read_tables(one) or verb_of(one) not in ("INSERT", "REPLACE")] == []


def test_a_plain_change_reads_one_table_at_most(targets: dict[bytes, int]) -> None:
    assert [one.raw for one in queries(targets) if len(set(read_tables(one))) > 1] == []
