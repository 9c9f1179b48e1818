"""Of a record of many tables only those are read that a statement names, wherever that changes nothing in the answer."""

from pathlib import Path

import pytest

from protocol.sql.tables.source_table import Column, Key, Table
from protocol.statements import SourceFacts, StatementSession, answer_statement
from protocol.statements.requests import QueryTables
from relay.schema_history.schema_file import read_schema
from relay.schema_history.schema_record import line, table_line
from relay.source_tables.table_facts import table_facts

MYSQL = SourceFacts("mysql", "9.7.4", 1, "uuid")
COLUMNS = "SELECT column_name FROM information_schema.columns"


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        (
            f"{COLUMNS} WHERE table_schema = 'Shop' AND table_name = 'Orders' ORDER BY ordinal_position",
            ("shop", "orders"),
        ),
        (f"{COLUMNS} c WHERE c.TABLE_NAME='t' AND extra <> '' LIMIT 3", ("", "t")),
        (f"{COLUMNS} WHERE table_schema = 'a' GROUP BY table_name", ("a", "")),
        ("SHOW FULL COLUMNS FROM `Shop`.`Orders`", ("shop", "orders")),
        (COLUMNS, ("", "")),
        (f"{COLUMNS} WHERE table_name = 't' OR 1", ("", "")),
        (f"{COLUMNS} WHERE table_name = 't' || 1", ("", "")),
        (f"{COLUMNS} WHERE NOT table_name = 't'", ("", "")),
        (f"{COLUMNS} WHERE table_name = 't' = 0", ("", "")),
        (f"{COLUMNS} WHERE extra BETWEEN 'a' AND table_name = 't'", ("", "")),
        (f"{COLUMNS} WHERE CASE WHEN 1 AND table_name = 't' THEN 0 ELSE 1 END", ("", "")),
        (f"{COLUMNS} WHERE (table_name = 't' AND 1) IS NOT NULL", ("", "")),
        (f"{COLUMNS} WHERE table_name = 't' UNION {COLUMNS}", ("", "")),
        (
            f"{COLUMNS} WHERE table_name IN (SELECT table_name FROM information_schema.tables WHERE table_name = 't')",
            ("", ""),
        ),
        (f"{COLUMNS} a, information_schema.tables b WHERE b.table_name = 't'", ("", "")),
    ],
)
def test_only_conditions_that_every_row_must_fulfil_name_a_table(statement: str, named: tuple[str, str]) -> None:
    request = answer_statement(statement, StatementSession(MYSQL, 1), 0.0)
    assert isinstance(request, QueryTables)
    assert request.named == named


def test_of_a_record_the_table_that_is_named_is_read_whatever_its_case(tmp_path: Path) -> None:
    columns = (Column("id", "int"),)
    tables = [Table(schema, name, "InnoDB", columns, (("PRIMARY", Key(("id",), True)),)) for schema, name in
              (("shop", "Orders"), ("shop", "lines"), ("other", "orders"), ("shop", "größe"))]  # fmt: skip
    lines = [line("watched", "b.000001", 4), *(table_line(table_facts(table), "b.000001", 90) for table in tables)]
    lines.append(line("definition", "b.000001", 99, names=["lines"]))
    (tmp_path / "source-schema.jsonl").write_text("".join(lines))

    def found(*named: str) -> list[tuple[str, str]]:
        standing = read_schema(tmp_path, (named[0], named[1])).standing((1, 100))
        return [(table.schema, table.name) for table in standing]

    assert found("shop", "orders") == [("shop", "Orders")]
    assert found("", "orders") == [("other", "orders"), ("shop", "Orders")]
    assert found("shop", "lines") == []  # it has changed since
    assert ("shop", "größe") in found("shop", "größe")
    assert len(found("", "")) == 3
