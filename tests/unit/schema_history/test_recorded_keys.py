"""Keys, foreign keys and collations in `source-schema.jsonl`: how long they hold, and what older lines leave open."""

import json
from dataclasses import replace

import pytest

from protocol.binlog.schema.definition_statement import statement_setting
from protocol.sql.tables.source_table import Column, ForeignKey, Key, Table, whole_key
from relay.schema_history.schema_record import RecordedSchema, line, table_line
from relay.source_tables.table_facts import table_facts
from tests.support.event_stream import raw_event

ONE, TWO = "bin.000001", "bin.000002"
CHILD = Table(
    "shop",
    "t",
    "InnoDB",
    (Column("id", "int"), Column("name", "varchar(30)", "utf8mb4", "utf8mb4_bin")),
    (("PRIMARY", whole_key(("id",), True)), ("n", Key(("name", ""), True, (10, None)))),
    "utf8mb4",
    (("f", ForeignKey(("id",), "other", "Parent", ("no",), "CASCADE", "SET NULL")),),
    "utf8mb4_bin",
)
FOREIGN = CHILD.foreign_keys


def sql(file: str, offset: int, text: str, *names: str) -> str:
    facts = {"text": text, "schema": "shop", "thread": 1, "version": "5.6.24"}
    return line("definition", file, offset, names=list(names), sql=facts)


def schema(*lines: str) -> RecordedSchema:
    return RecordedSchema.parse("".join(lines).encode())


def foreign_at(found: RecordedSchema, file: str, offset: int, name: str = "t") -> object:
    table = found.recorded("shop", name, file, offset)
    assert table is not None
    return table.foreign_keys


def test_keys_foreign_keys_and_collations_read_back_as_they_were_written() -> None:
    assert schema(table_line(table_facts(CHILD), ONE, 4)).recorded("shop", "t", ONE, 4) == CHILD


def test_a_table_without_foreign_keys_is_told_apart_from_one_of_which_nobody_knows() -> None:
    for foreign in ((), None):
        written = Table("shop", "t", "InnoDB", CHILD.columns, CHILD.keys, foreign_keys=foreign)
        found = schema(table_line(table_facts(written), ONE, 4)).recorded("shop", "t", ONE, 4)
        assert found is not None
        assert found.foreign_keys == foreign


def test_of_older_lines_it_is_not_known_what_of_a_column_is_in_a_key_and_whether_there_are_foreign_keys() -> None:
    facts = json.loads(table_facts(CHILD))
    del facts["foreign_keys"], facts["collation"]
    for key in facts["keys"].values():
        del key["prefixes"]
    found = schema(table_line(json.dumps(facts), ONE, 4)).recorded("shop", "t", ONE, 4)
    assert found is not None
    assert (found.foreign_keys, found.collation) == (None, "")
    assert [(key.columns, key.prefixes) for _name, key in found.keys] == [(("id",), None), (("name", ""), None)]
    assert [key.parts for _name, key in found.keys] == [None, None]


def test_foreign_keys_hold_from_and_to_statements_that_may_rename_what_they_refer_to() -> None:
    found = schema(
        line("watched", ONE, 4, statements=True),
        sql(ONE, 100, "RENAME TABLE other.x TO other.Parent", "x", "parent"),
        sql(ONE, 150, "ALTER TABLE other.Parent ADD z INT", "parent"),
        table_line(table_facts(CHILD), ONE, 200),
        sql(ONE, 250, "ALTER TABLE other.Parent ADD y INT", "parent"),
        sql(ONE, 300, "ALTER TABLE other.Parent CHANGE no number INT", "parent"),
        line("covered", TWO, 4),
    )
    assert [foreign_at(found, ONE, at) for at in (99, 101, 160, 299, 301)] == [None, FOREIGN, FOREIGN, FOREIGN, None]
    assert foreign_at(found, TWO, 4) is None
    assert [table.foreign_keys for _first, _behind, table in found.spans() if table.name == "t"][-1] is None


def test_an_answer_behind_a_renaming_leaves_the_foreign_keys_before_it_as_they_were_told_then() -> None:
    key = ForeignKey(("id",), "other", "Grandparent", ("no",), "CASCADE", "SET NULL")
    later = replace(CHILD, foreign_keys=(("f", key),))
    found = schema(
        line("watched", ONE, 4, statements=True),
        table_line(table_facts(CHILD), ONE, 200),
        sql(ONE, 250, "RENAME TABLE other.Parent TO other.Grandparent", "other", "parent", "grandparent"),
        table_line(table_facts(later), ONE, 300),
        line("covered", TWO, 4),
    )
    assert [foreign_at(found, ONE, at) for at in (210, 249, 251, 310)] == [FOREIGN, FOREIGN, *[later.foreign_keys] * 2]
    ((standing,),) = [found.standing((1, at)) for at in (240,)]
    assert standing.foreign_keys == FOREIGN


def test_a_statement_without_its_text_may_have_renamed_a_parent() -> None:
    found = schema(
        line("watched", ONE, 4),
        table_line(table_facts(CHILD), ONE, 200),
        line("definition", ONE, 300, names=["parent"]),
        line("covered", TWO, 4),
    )
    assert [foreign_at(found, ONE, at) for at in (299, 301)] == [FOREIGN, None]


def test_what_the_source_did_not_tell_is_there_if_statements_say_it() -> None:
    create = (
        "CREATE TABLE t (id INT, name VARCHAR(30) COLLATE utf8mb4_bin, UNIQUE n (name(9)), "
        "CONSTRAINT f FOREIGN KEY (id) REFERENCES p (no)) ENGINE=InnoDB"
    )
    columns = (Column("id", "int"), Column("name", "varchar(30)", "utf8mb4"))
    asked = Table("shop", "t", "InnoDB", columns, (("n", Key(("name",), True)),))
    begin = line("watched", ONE, 4, statements=True)
    end = line("covered", TWO, 4)
    found = schema(begin, sql(ONE, 100, create, "t"), table_line(table_facts(asked), ONE, 200), end)
    table = found.table_with_keys("shop", "t", ONE, 150)
    assert table is not None
    assert dict(table.keys)["n"].prefixes == (9,)
    assert table.foreign_keys == (("f", ForeignKey(("id",), "shop", "p", ("no",))),)
    assert table.columns[1].collation == "utf8mb4_bin"
    before = found.table("shop", "t", ONE, 150)
    assert before is not None
    assert before.foreign_keys is None


def test_statements_that_say_other_keys_than_the_source_tell_columns_only() -> None:
    create = "CREATE TABLE t (id INT, name VARCHAR(30) COLLATE utf8mb4_bin, UNIQUE n (name)) ENGINE=InnoDB"
    begin = line("watched", ONE, 4, statements=True)
    altered = sql(ONE, 300, "ALTER TABLE t ADD z INT", "t")
    found = schema(
        begin, sql(ONE, 100, create, "t"), table_line(table_facts(CHILD), ONE, 200), altered, line("covered", TWO, 4)
    )
    known = found.worked_out("shop", "t", ONE, 150)
    assert known is not None
    assert [column.name for column in known.columns] == ["id", "name"]
    assert (known.foreign_keys, [key.prefixes for _name, key in known.keys]) == (None, [None])
    later = found.worked_out("shop", "t", ONE, 301)
    assert later is not None
    assert (later.foreign_keys, dict(later.keys)["n"].prefixes) == (FOREIGN, (10, None))


# ---- what events tell --------------------------------------------------------------------------------------------------

MODE = b"\x00\x00\x00\x00\x00\x01" + (1 << 5).to_bytes(8, "little") + b"\x06\x03std\x04\x2d\x00\x2d\x00\x08\x00"
INVOKER = b"\x0b\x04root\x09localhost"
SCHEMAS = b"\x0c\x02one\x00two\x00"
MANY_SCHEMAS = b"\x0c\xfe"
UTF8MB4 = b"\x11" + bytes(8) + b"\x12\xff\x00\x13\x00"


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (MODE, ()),
        (MODE + SCHEMAS + UTF8MB4, ((45, 255),)),
        (MODE + INVOKER + MANY_SCHEMAS + b"\x10\x01" + UTF8MB4, ((45, 255),)),
        (b"\x83\x02\x21\x00\x00\x08\x2d\x00\x00\x09" + MODE, ((33, 2048), (45, 2304))),
        (MODE + b"\x0b\x04ro", ()),
        (MODE + b"\x0c\x02one", ()),
    ],
)
def test_an_event_tells_which_collations_character_sets_have(status: bytes, told: tuple[tuple[int, int], ...]) -> None:
    body = bytes(8) + b"\x01" + bytes(2) + len(status).to_bytes(2, "little") + status + b"d\x00CREATE TABLE t (a INT)"
    setting = statement_setting(raw_event(2, body), 13)
    assert setting.default_collations == told
    assert setting.server_collation == 8
