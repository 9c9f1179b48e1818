"""Statements that an application may write into its tables: rows that are added, changed, replaced and removed, one by one and many.

Nothing hangs on the order of rows, and values are what the columns take.
"""

import random
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from deploy.servers import Server

_COLUMNS: Final = (
    "SELECT table_schema, table_name, column_name, data_type, column_type, character_maximum_length, extra, column_key "
    "FROM information_schema.columns NATURAL JOIN (SELECT table_schema, table_name FROM information_schema.tables "
    "WHERE table_type = 'BASE TABLE') t WHERE table_schema NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys') "
    "ORDER BY table_schema, table_name, ordinal_position"
)
_HIGHEST: Final = {"tinyint": 127, "smallint": 32767, "mediumint": 8388607, "int": 2**31 - 1, "bigint": 2**63 - 1}
_TEMPORAL: Final = {
    "date": ("'2024-02-29'", "'1999-12-31'", "CURDATE()"),
    "datetime": ("NOW()", "'2024-02-29 12:13:14'", "'1999-12-31 23:59:59'", "CURRENT_TIMESTAMP"),
    "timestamp": ("NOW()", "'2024-02-29 12:13:14'", "CURRENT_TIMESTAMP", "FROM_UNIXTIME(1700000000)"),
    "time": ("'12:13:14'", "'-01:02:03'", "CURTIME()"),
    "year": ("1999", "2024", "YEAR(NOW())"),
}
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz ABCDEF 0123456789-_äöüßéñ"
_LONGEST: Final = 30


class _Column(NamedTuple):
    name: str
    type: str
    defined: str
    length: int
    is_numbered: bool
    is_key: bool

    def value(self, chosen: random.Random) -> str:
        """Return a literal or a call."""
        if self.type in _HIGHEST:
            return str(chosen.choice((0, 1, chosen.randint(0, 60), chosen.randint(0, _HIGHEST[self.type]))))
        if self.type in _TEMPORAL:
            return chosen.choice(_TEMPORAL[self.type])
        if self.type in ("decimal", "float", "double"):
            return chosen.choice(("0", "0.5", "1.25", str(chosen.randint(0, 9))))
        if self.type in ("enum", "set"):
            return f"'{chosen.choice(self.defined[self.defined.index('(') + 1 : -1].split(',')).strip(chr(39))}'"
        if self.type == "bit":
            return "b'1'"
        length = chosen.randint(0, min(self.length, _LONGEST))
        if self.type.endswith(("blob", "binary")):
            return f"0x{chosen.randbytes(length).hex()}" if length else "''"
        if self.type == "json":
            return """'{"a": [1, 2, "x"]}'"""
        if self.type == "uuid":
            return "'6ccd780c-baba-1026-9564-5b8c656024db'"
        if self.type in ("inet4", "inet6"):
            return "'10.1.2.3'"
        if self.type in ("point", "geometry"):
            return "ST_GeomFromText('POINT(1 2)')"
        return f"'{''.join(chosen.choice(_LETTERS) for _ in range(length))}'"


_Table = tuple[str, str, list[_Column]]


def traffic_of(server: Server, seed: int, rounds: int) -> list[str]:
    """Return statements for all tables of the server, the same for the same seed."""
    chosen = random.Random(seed)
    tables = _tables(server)
    return [text for _ in range(rounds) for table in tables for text in _statements(chosen, table)]


def _tables(server: Server) -> list[_Table]:
    found: dict[tuple[str, str], list[_Column]] = {}
    for schema, table, name, kind, defined, length, extra, key in server.sql(_COLUMNS):
        extra = str(extra).lower()
        columns = found.setdefault((str(schema), str(table)), [])
        if "generated" not in extra.replace("default_generated", "") and "virtual" not in extra:
            length = int(str(length or _LONGEST))
            columns.append(
                _Column(str(name), str(kind).lower(), _text(defined), length, "auto_increment" in extra, key == "PRI")
            )
    return [(*name, columns) for name, columns in found.items()]


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _statements(chosen: random.Random, table: _Table) -> Iterator[str]:
    schema, name, columns = table
    full = f"`{schema}`.`{name}`"
    keys = [one for one in columns if one.is_key]
    others = [one for one in columns if not one.is_key and not one.is_numbered]
    filled = [one for one in columns if not one.is_numbered or chosen.random() < 0.3]
    names = ", ".join(f"`{one.name}`" for one in filled)
    yield f"INSERT INTO {full} ({names}) VALUES ({_values(chosen, filled)})"
    kind = chosen.randrange(9)
    if kind == 0:
        yield f"INSERT INTO {full} ({names}) VALUES ({_values(chosen, filled)}), ({_values(chosen, filled)})"
    elif kind == 1:
        yield f"REPLACE INTO {full} ({names}) VALUES ({_values(chosen, filled)})"
    elif kind == 2 and others:
        changed = chosen.choice(others).name
        yield (
            f"INSERT INTO {full} ({names}) VALUES ({_values(chosen, filled)}) "
            f"ON DUPLICATE KEY UPDATE `{changed}` = VALUES(`{changed}`)"
        )
    elif kind == 3 and others:
        one = chosen.choice(others)
        where = f" WHERE `{keys[0].name}` IS NOT NULL" if keys else ""
        yield f"UPDATE {full} SET `{one.name}` = {one.value(chosen)}{where}"
    elif kind == 4 and others and keys:
        one = chosen.choice(others)
        yield f"UPDATE {full} SET `{one.name}` = {one.value(chosen)} WHERE {_equal(chosen, keys)}"
    elif kind == 5 and others and not any(one.is_numbered for one in columns):
        listed = ", ".join(f"`{one.name}`" for one in columns)
        ordered = f" ORDER BY {', '.join(f'`{one.name}`' for one in keys)}" if keys else ""
        yield f"INSERT IGNORE INTO {full} ({listed}) SELECT {listed} FROM {full}{ordered}"
    elif kind == 6 and keys:
        yield f"DELETE FROM {full} WHERE {_equal(chosen, keys)}"
    elif kind == 7:
        yield "START TRANSACTION"
        for _ in range(3):
            yield f"INSERT INTO {full} ({names}) VALUES ({_values(chosen, filled)})"
        yield chosen.choice(("COMMIT", "ROLLBACK"))
    elif kind == 8 and keys and others:
        listed = ", ".join(str(chosen.randint(0, 60)) for _ in range(3))
        yield (
            f"DELETE FROM {full} WHERE `{keys[0].name}` IN ({listed})"
            if keys[0].type in _HIGHEST
            else f"DELETE FROM {full} WHERE {_equal(chosen, keys)}"
        )


def _values(chosen: random.Random, columns: Sequence[_Column]) -> str:
    return ", ".join(one.value(chosen) for one in columns)


def _equal(chosen: random.Random, columns: Sequence[_Column]) -> str:
    return " AND ".join(f"`{one.name}` = {one.value(chosen)}" for one in columns)
