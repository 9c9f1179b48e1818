"""Values of keys over expressions, as the server itself computes and compares them.

A row is inserted into a copy of its table that has no other key: if the key considers it a duplicate, it has the value of an earlier
row. A key over a JSON array has a value for each of its elements: these are inserted one by one into a table with such a key.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.support.logged_json import json_of
from tests.support.logged_rows import ABSENT, Row, Value

_INTEGERS: Final = frozenset(("tinyint", "smallint", "mediumint", "int", "bigint"))
_REALS: Final = frozenset(("float", "double"))
_BYTES: Final = frozenset(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"))
_TEXTS: Final = frozenset(("char", "varchar", "tinytext", "text", "mediumtext", "longtext"))
_JSON: Final = "json"
_TOLD: Final = _INTEGERS | _REALS | _BYTES | _TEXTS | {_JSON}
_OF_ARRAY: Final = re.compile(r"cast\((.*) as ([^()]+(?:\([\d, ]+\))?[^()]*) array\)", re.IGNORECASE | re.DOTALL)
"""The array, and the type of its elements in the key."""
_NUMBER: Final = "number_of_value"


@dataclass(frozen=True, slots=True)
class ToldColumn:
    """A column whose values are written in SQL. `kind` may be "int"; `charset` is that of texts; with `generated` the server computes
    its values."""

    name: str
    kind: str
    unsigned: bool
    charset: str
    generated: bool

    def literal(self, value: Value) -> str:
        """Return the value in SQL."""
        if value is None:
            return "NULL"
        if isinstance(value, float):
            return repr(value)
        assert isinstance(value, bytes)
        if self.kind == _JSON:
            return f"CAST(_utf8mb4 X'{json.dumps(json_of(value)).encode().hex()}' AS JSON)"
        if self.kind in _INTEGERS:
            return str(int.from_bytes(value, "little", signed=not self.unsigned))
        return f"_{self.charset} X'{value.hex()}'" if self.kind in _TEXTS else f"X'{value.hex()}'"


@dataclass(frozen=True, slots=True)
class ExpressionKey:
    """A unique key one of whose parts is an expression. `parts` are in SQL; `definition` is the table's, with all that decides
    equality."""

    schema: str
    table: str
    name: str
    parts: tuple[str, ...]
    columns: tuple[ToldColumn, ...]
    definition: str

    @property
    def array(self) -> str | None:
        """The JSON array whose elements are values of the key, in SQL; None if it has none."""
        return next((found[1] for part in self.parts if (found := _OF_ARRAY.fullmatch(part))), None)

    def told(self) -> list[tuple[int, ToldColumn]]:
        """The columns of which a row consists here, by number. Raises: ValueError if values that the key depends on cannot be
        written."""
        found = []
        computes = any(column.generated for column in self.columns)
        for number, column in enumerate(self.columns):
            if column.generated:
                continue
            if column.kind in _TOLD:
                found.append((number, column))
            elif computes or any(f"`{column.name}`" in part for part in self.parts):
                where = f"{self.schema}.{self.table}.{column.name}"
                raise ValueError(
                    f"the key {self.name} may hang on {where}, whose {column.kind} values are not told here"
                )
        return found


class ExpressionKeys:
    """The values of such keys. `run` runs a statement on the server; `database` is for the copies of tables."""

    def __init__(self, run: Callable[[str], Sequence[tuple[Any, ...]]], database: str) -> None:
        self._run, self._database = run, database
        self._copies: dict[tuple[str, str], str] = {}
        self._numbers: dict[tuple[str, str, Row], tuple[int, ...]] = {}
        self._given = 0

    def numbers_of(self, key: ExpressionKey, row: Row) -> tuple[int, ...]:
        """Return the same numbers for equal values of the key, of which a row has several by an array; none if NULL is in it, or the
        row is not known."""
        known = (key.definition, key.name, row)
        if known not in self._numbers:
            self._numbers[known] = tuple(self._ask(key, row))
        return self._numbers[known]

    def _ask(self, key: ExpressionKey, row: Row) -> Iterator[int]:
        told = key.told()
        if any(row[number] is ABSENT for number, _column in told):
            return
        copy = self._copy(key)
        names = "".join(f"`{column.name}`, " for _number, column in told)
        values = "".join(f"{column.literal(row[at])}, " for at, column in told)
        if key.array is None:
            found = self._put(f"{copy} ({names}{_NUMBER}) VALUES ({values}LAST_INSERT_ID({{}}))")
            nulls = " OR ".join(f"({part}) IS NULL" for part in key.parts)
            ((is_null,),) = self._run(f"SELECT {nulls} FROM {copy} WHERE {_NUMBER} = {found}")
            if not is_null:
                yield found
            return
        self._run(f"DELETE FROM {copy}")
        self._run(f"INSERT INTO {copy} ({names}{_NUMBER}) VALUES ({values}0)")
        others = [part for part in key.parts if _OF_ARRAY.fullmatch(part) is None]
        nulls = "".join(f" OR ({part}) IS NULL" for part in others)
        ((count, is_null),) = self._run(f"SELECT JSON_LENGTH({key.array}), ({key.array}) IS NULL{nulls} FROM {copy}")
        for element in range(0 if is_null else count):
            parts = [
                f"({part})" if part in others else f"JSON_ARRAY(JSON_EXTRACT({key.array}, '$[{element}]'))"
                for part in key.parts
            ]
            yield self._put(f"{copy}_values SELECT {', '.join(parts)}, LAST_INSERT_ID({{}}) FROM {copy}")

    def _put(self, row: str) -> int:
        self._given += 1
        table = row.split(" ", 1)[0]
        self._run(
            f"INSERT INTO {row.format(self._given)} ON DUPLICATE KEY UPDATE {_NUMBER} = LAST_INSERT_ID({table}.{_NUMBER})"
        )
        ((found,),) = self._run("SELECT LAST_INSERT_ID()")
        return int(found)

    def _copy(self, key: ExpressionKey) -> str:
        known = (key.definition, key.name)
        if known not in self._copies:
            name = f"copy_{len(self._copies)}"
            copy = f"{self._database}.{name}"
            self._run(f"DROP TABLE IF EXISTS {copy}, {copy}_values")
            self._run(f"CREATE TABLE {copy} LIKE `{key.schema}`.`{key.table}`")
            indexes = self._run(
                "SELECT DISTINCT index_name FROM information_schema.statistics"
                f" WHERE table_schema = '{self._database}' AND table_name = '{name}'"
            )
            others = [f"DROP INDEX `{index}`, " for (index,) in indexes if index != key.name or key.array is not None]
            self._run(f"ALTER TABLE {copy} {''.join(others)}ADD COLUMN {_NUMBER} BIGINT NOT NULL, ADD KEY ({_NUMBER})")
            if key.array is not None:
                self._make_values(key, copy)
            self._copies[known] = copy
        return self._copies[known]

    def _make_values(self, key: ExpressionKey, copy: str) -> None:
        """Create a table with the parts of the key as columns, and the same key over them."""
        columns, parts = [], []
        for number, part in enumerate(key.parts):
            found = _OF_ARRAY.fullmatch(part)
            columns.append(f"({found[1] if found else part}) AS p{number}")
            parts.append(f"(CAST(p{number} AS {found[2]} ARRAY))" if found else f"p{number}")
        self._run(f"CREATE TABLE {copy}_values AS SELECT {', '.join(columns)}, {_NUMBER} FROM {copy}")
        self._run(f"ALTER TABLE {copy}_values ADD UNIQUE KEY ({', '.join(parts)})")
