"""The source's foreign keys, queried without opening a table.

MySQL from 8.0 on answers from its dictionary, schema by schema. Before it, and in MariaDB, information_schema's own tables of
constraints open each table of a schema; InnoDB's, which do not, need PROCESS and cover all schemas at once.
"""

import re
from typing import Any, Final

import pymysql.err

from protocol.errors import ErrorCode
from protocol.sql.server_version import version_numbers
from protocol.sql.tables.source_table import CASCADE, RESTRICT, SET_NULL, ForeignKey, TableName
from relay.upstream.schema.answer_text import SchemaSource, answer_text, quoted_text
from relay.upstream.source.answer_bound import TABLE_LIST

NamedForeignKeys = tuple[tuple[str, ForeignKey], ...]
ForeignKeysOfTables = dict[str, NamedForeignKeys | None]
"""This type maps tables' names to their foreign keys; None means not known. Tables that are missing from it have none."""

_TIMEOUT_S: Final = 120.0
MOST_FOREIGN_KEYS: Final = 100_000
"""With more, none is considered known: they would crowd a process that exists for a stream."""
_MOST_COLUMNS: Final = 4 * MOST_FOREIGN_KEYS
_WITH_DICTIONARY: Final = (8, 0, 0)

OF_RELAY: Final = "SHOW GLOBAL STATUS LIKE 'Binlog_relay_%'"
"""Only relays have rows for this statement."""
_COLUMNS: Final = (
    "SELECT TABLE_NAME, CONSTRAINT_NAME, ORDINAL_POSITION, COLUMN_NAME, REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME, "
    "REFERENCED_COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA = {schema} AND "
    "REFERENCED_TABLE_NAME IS NOT NULL"
)
_RULES: Final = (
    "SELECT TABLE_NAME, CONSTRAINT_NAME, DELETE_RULE, UPDATE_RULE FROM information_schema.REFERENTIAL_CONSTRAINTS "
    "WHERE CONSTRAINT_SCHEMA = {schema}"
)
# InnoDB has names of files: `t@1ob` is `tüb`. A name with other characters is not as the server has it: MariaDB keeps names of tables
# that did not exist in this form.
_FILE_NAME: Final = re.compile(r"[\w$@#-]+", re.ASCII)
_NAME: Final = "CONVERT(CONVERT(CAST(SUBSTRING_INDEX({name}, '/', {part}) AS BINARY) USING filename) USING utf8)"
_INNODB_KEYS: Final = "SELECT ID, {names}, TYPE, REF_NAME FROM information_schema.INNODB_SYS_FOREIGN LIMIT {limit}"
_INNODB_COLUMNS: Final = (
    "SELECT ID, POS, FOR_COL_NAME, REF_COL_NAME FROM information_schema.INNODB_SYS_FOREIGN_COLS LIMIT {limit}"
)
# These are bits of TYPE; none of them means RESTRICT.
_ON_DELETE: Final = ((1, CASCADE), (2, SET_NULL), (16, "NO ACTION"))
_ON_UPDATE: Final = ((4, CASCADE), (8, SET_NULL), (32, "NO ACTION"))


class ForeignKeyQuery:
    """The queries over one connection. `refusal` says why the source does not answer; it is empty if it does, or was not asked."""

    def __init__(self, source: SchemaSource) -> None:
        self._source = source
        self._has_dictionary: bool | None = None
        self._is_of_relay: bool | None = None
        self._all: dict[str, ForeignKeysOfTables] | None = None
        self._doubtful: set[TableName] = set()
        self.refusal = ""
        self.lacks_privilege = False

    async def of_schema(self, schema: str) -> ForeignKeysOfTables | None:
        """Return the foreign keys of the tables of one schema that have some; None if unknown. Raises: as `query`."""
        if await self.is_of_relay():
            self.refusal = "it is a relay, which does not have them"
            return None
        if self._has_dictionary is None:
            version = answer_text((await self._source.query("SELECT VERSION()", _TIMEOUT_S))[0][0])
            self._has_dictionary = "mariadb" not in version.lower() and version_numbers(version) >= _WITH_DICTIONARY
            if not self._has_dictionary:
                await self._ask_innodb()
        if self._has_dictionary:
            return await self._ask_dictionary(schema)
        return self._all.get(schema, {}) if self._all is not None else None

    async def is_of_relay(self) -> bool:
        """Return whether the source is a relay: a relay shows neither prefixes of keys, nor foreign keys, nor which collations are a
        default.

        Raises: as `query`.
        """
        if self._is_of_relay is None:
            self._is_of_relay = bool(await self._source.query(OF_RELAY, _TIMEOUT_S))
        return self._is_of_relay

    async def _ask_dictionary(self, schema: str) -> ForeignKeysOfTables:
        quoted = quoted_text(schema)
        columns = await self._source.query(_COLUMNS.format(schema=quoted), _TIMEOUT_S, TABLE_LIST)
        told = await self._source.query(_RULES.format(schema=quoted), _TIMEOUT_S, TABLE_LIST) if columns else []
        rules = {(answer_text(row[0]), answer_text(row[1])): (answer_text(row[2]), answer_text(row[3])) for row in told}
        parts: dict[tuple[str, str], list[tuple[int, Any, Any, Any, Any]]] = {}
        for table, name, place, *rest in columns:
            parts.setdefault((answer_text(table), answer_text(name)), []).append((int(place), *rest))
        found: dict[str, dict[str, ForeignKey]] = {}
        for (table, name), some in parts.items():
            # One without a rule was made between the two queries: the statement makes the next query due.
            on_delete, on_update = rules.get((table, name), (CASCADE, CASCADE))
            some.sort(key=lambda part: part[0])
            _place, _column, parent_schema, parent, _referenced = some[0]
            found.setdefault(table, {})[name] = ForeignKey(
                tuple(answer_text(part[1]) for part in some),
                answer_text(parent_schema),
                answer_text(parent),
                tuple(answer_text(part[4]) for part in some),
                on_delete,
                on_update,
            )
        return {table: tuple(sorted(keys.items())) for table, keys in found.items()}

    async def _ask_innodb(self) -> None:
        names = ", ".join(_NAME.format(name=name, part=part) for name in ("FOR_NAME", "REF_NAME") for part in (1, -1))
        try:
            asked = _INNODB_KEYS.format(names=names, limit=MOST_FOREIGN_KEYS + 1)
            keys = await self._source.query(asked, _TIMEOUT_S, TABLE_LIST)
            asked = _INNODB_COLUMNS.format(limit=_MOST_COLUMNS + 1)
            columns = await self._source.query(asked, _TIMEOUT_S, TABLE_LIST) if keys else []
        except pymysql.err.MySQLError as error:
            self.lacks_privilege = bool(error.args) and error.args[0] == ErrorCode.ER_SPECIFIC_ACCESS_DENIED_ERROR
            self.refusal = "the account may not see them" if self.lacks_privilege else "the source has no list of them"
            return
        if len(keys) > MOST_FOREIGN_KEYS or len(columns) > _MOST_COLUMNS:
            self.refusal = f"there are more than {MOST_FOREIGN_KEYS}"
            return
        parts: dict[str, list[tuple[int, str, str]]] = {}
        for key, place, column, referenced in columns:
            parts.setdefault(answer_text(key), []).append((int(place), answer_text(column), answer_text(referenced)))
        found: dict[str, dict[str, dict[str, ForeignKey]]] = {}
        for key, schema, table, parent_schema, parent, kind, file_name in keys:
            if any(_FILE_NAME.fullmatch(one) is None for one in answer_text(file_name).split("/")):
                self._doubtful.add((answer_text(schema), answer_text(table)))
                continue
            some = sorted(parts.get(answer_text(key), ()))
            name = answer_text(key).partition("/")[2]
            found.setdefault(answer_text(schema), {}).setdefault(answer_text(table), {})[name] = ForeignKey(
                tuple(column for _place, column, _referenced in some),
                answer_text(parent_schema),
                answer_text(parent),
                tuple(referenced for _place, _column, referenced in some),
                _rule(int(kind), _ON_DELETE),
                _rule(int(kind), _ON_UPDATE),
            )
        self._all = {
            schema: {table: tuple(sorted(named.items())) for table, named in tables.items()}
            for schema, tables in found.items()
        }
        for schema, table in self._doubtful:
            self._all.setdefault(schema, {})[table] = None


def _rule(kind: int, rules: tuple[tuple[int, str], ...]) -> str:
    return next((name for bit, name in rules if kind & bit), RESTRICT)
