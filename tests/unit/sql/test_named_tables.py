"""Which tables a statement names, where each clause has them."""

import pytest

from protocol.sql.statements.named_tables import read_tables, table_places
from protocol.sql.statements.statement import StatementText


def named(text: str) -> list[str]:
    tokens = StatementText(text.encode(), "d").tokens
    return [tokens[place].text for _, place in table_places(tokens, 0, len(tokens) - 1)]


@pytest.mark.parametrize(
    ("text", "tables"),
    [("INSERT INTO a (x) SELECT 1 FROM b JOIN d.c ON b.x = c.x, e WHERE x = 1", ["a", "b", "c", "e"]),
     ("SELECT 1 FROM (a, b) JOIN c USING (x)", ["a", "b", "c"]),
     ("DELETE FROM a USING b AS a JOIN c", ["a", "b", "c"]),
     ("INSERT INTO a TABLE b", ["a", "b"]),
     ("UPDATE LOW_PRIORITY a, (SELECT x FROM b) y SET a.x = REPLACE(y.x, 'FROM', 1), a.z = EXTRACT(DAY FROM z)", ["a", "b"]),
     ("INSERT INTO a SELECT * FROM b ON DUPLICATE KEY UPDATE x = 1, y = 2", ["a", "b"]),
     ("SELECT CONVERT(x USING latin1) FROM a ORDER BY x, y FOR UPDATE", ["a"]),
     ("ALTER IGNORE TABLE a RENAME TO b", [])],
)  # fmt: skip
def test_a_name_is_a_tables_where_the_clause_has_tables(text: str, tables: list[str]) -> None:
    assert named(text) == tables


def test_a_statement_reads_the_tables_of_its_queries_and_not_its_target() -> None:
    statement = StatementText(b"INSERT INTO a SELECT * FROM b, c.e", "d")
    assert read_tables(statement) == (("d", "b"), ("c", "e"))
