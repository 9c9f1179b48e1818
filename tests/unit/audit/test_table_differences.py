"""What is another in a table than before, told in words."""

import pytest

from protocol.sql.tables.source_table import Column, Table, whole_key
from relay.audit.definitions.table_differences import table_differences

ID = Column("id", "int", nullable=False)
NAME = Column("name", "varchar(9)", "utf8mb4")
PLACE = Column("place", "varchar(9)", "utf8mb4")


def table(*columns: Column, **options: object) -> Table:
    return Table("shop", "t", "InnoDB", columns, **options)  # type: ignore[arg-type]


KEYED = table(ID, NAME, keys=(("PRIMARY", whole_key(["id"], True)),))


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (None, None, []),
        (KEYED, KEYED, []),
        (None, KEYED, ["columns id int, name varchar(9); primary key id; InnoDB"]),
        (KEYED, None, ["not known any more"]),
        (table(ID), table(ID, NAME), ["column name varchar(9) added at the end"]),
        (table(ID), table(NAME, ID), ["column name varchar(9) added first"]),
        (table(ID, NAME), table(ID, PLACE, NAME), ["column place varchar(9) added behind id"]),
        (table(ID, NAME), table(NAME), ["column id int dropped"]),
        (table(ID, NAME), table(ID, PLACE), ["column name renamed place"]),
        (table(ID, NAME), table(NAME, ID), ["columns in another order: name, id"]),
        (table(ID), table(Column("id", "bigint", nullable=False)), ["column id int is bigint"]),
        (table(NAME), table(Column("name", "varchar(9)", "latin1")), ["column name utf8mb4 is latin1"]),
        (table(NAME), table(Column("name", "varchar(9)", "utf8mb4", default="x")), ["column name default none is x"]),
        (table(ID), table(Column("id", "int")), ["column id takes NULL"]),
        (table(ID, NAME), KEYED, ["primary key (id) added"]),
        (
            table(ID, keys=(("a", whole_key(["id"])),)),
            table(ID, keys=(("a", whole_key(["id"], True)),)),
            ["key a (id) is unique key a (id)"],
        ),
        (Table("s", "t", "MyISAM"), Table("s", "t", "InnoDB"), ["engine MyISAM is InnoDB"]),
    ],
)
def test_each_difference_is_told(before: Table | None, after: Table | None, told: list[str]) -> None:
    assert table_differences(before, after) == told
