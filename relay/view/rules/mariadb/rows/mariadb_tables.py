"""The translation of the Table_maps and rows of a MariaDB at one place of its binlogs, by its tables in the book."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from protocol.binlog.table_map import TableMap, UnknownColumnType, decode_table_map
from protocol.errors import Malformed
from protocol.sql.tables.source_table import TableName
from relay.source_tables.known_table import TableKind
from relay.view.rules.mariadb.rows.column_rule import Change, ColumnRule, TargetChoice, column_rules
from relay.view.rules.mariadb.rows.definition_guard import check_definition
from relay.view.rules.mariadb.rows.map_metadata import (
    CollationOf,
    column_names,
    translate_metadata,
    vector_dimensions,
)
from relay.view.rules.mariadb.rows.row_images import rows_for_mysql
from relay.view.rules.mariadb.rows.sequence_rows import may_be_sequence
from relay.view.rules.mariadb.statement.known_tables import TablesAtSource
from relay.view.stops import definition_stops, transaction_stops
from relay.view.stops.stop_reason import named

_ID_BYTES: Final = 6
_MOST_REMEMBERED: Final = 10_000
"""The most Table_maps whose conversions are kept."""


class ConvertedTable(NamedTuple):
    """The conversion of one Table_map event, and of the rows after it.

    `map_body` is for the target; None: the table is left out, with its Annotate and its rows (a sequence). `is_same`: neither the map
    nor its rows change, except for the version of the row events. `rows_are_same`: the rows do not.
    """

    name: TableName
    map_body: bytes | None
    is_same: bool
    rows_are_same: bool
    rules: tuple[ColumnRule, ...]

    def rows(self, event_type: int, body: bytes) -> tuple[int, bytes]:
        """Return type and body of a row event of the table (types 23-25, 30-32 and the compressed 166-171) as MySQL's of version 2.

        Raises: Untranslatable; AssertionError for a table that is left out.
        """
        assert self.map_body is not None, "rows of a table that is left out"
        return rows_for_mysql(self.name, event_type, body, self.rules, same=self.rows_are_same)


class _ToldMap(NamedTuple):
    """A conversion without the table's number, which changes each time that the source opens the table."""

    map_rest: bytes | None
    conversion: ConvertedTable


class MariadbTables(TablesAtSource):
    """The book with conversions. `collation_of` returns the target's number for a collation of the source."""

    def __init__(
        self,
        collation_of: CollationOf,
        choice: TargetChoice | None = None,
        told_kinds: Mapping[str, TableKind] | None = None,
        plain: Iterable[str] = (),
    ) -> None:
        super().__init__(told_kinds, plain)
        self._collation_of = collation_of
        self._choice = choice or TargetChoice()
        self._remembered: dict[bytes, _ToldMap] = {}
        self._remembered_at: object = None

    @property
    def described_by_definition(self) -> str:
        """The first table with columns that rows do not distinguish, VECTOR or JSON that is no text, as `shop.t`; "": there is none."""
        kinds = ("vector",) if self._choice.json == "longtext" else ("vector", "json")
        for name, known in self._tables.items():
            if not known.is_recorded and any(column.type.startswith(kinds) for column in known.columns):
                return named(name)
        return ""

    # ---- rows ----

    def convert_map(self, body: bytes, server_version: str = "") -> ConvertedTable:
        """Return the conversion of a Table_map and the rows after it; `body` is without checksum. Raises: Untranslatable."""
        if self._remembered_at is not self.changes:
            self._remembered_at = self.changes
            self._remembered.clear()
        told = self._remembered.get(body[_ID_BYTES:])
        if told is None:
            told = self._converted(body)
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[body[_ID_BYTES:]] = told
        if told.map_rest is None:
            return told.conversion
        return told.conversion._replace(map_body=body[:_ID_BYTES] + told.map_rest)

    def _converted(self, body: bytes) -> _ToldMap:
        try:
            found = decode_table_map(body)
            found.check_columns()
        except UnknownColumnType as error:
            raise definition_stops.column_type_of_mariadb(error.number, found.name, error.kind) from error
        except Malformed as error:
            raise transaction_stops.malformed(f"a Table_map is damaged: {error}") from error
        try:
            return self._of_table(found, body)
        except Malformed as error:
            raise transaction_stops.malformed(f"the Table_map of {named(found.name)} is damaged: {error}") from error

    def _of_table(self, found: TableMap, body: bytes) -> _ToldMap:
        metadata = list(found.optional_fields())
        names = column_names(metadata, len(found.columns))
        if self._is_sequence(found, names):
            return _ToldMap(None, ConvertedTable(found.name, None, False, False, ()))
        known = self.get(found.name)
        if known is not None and known.is_recorded:
            known = None
        if known is not None:
            check_definition(found, names, known)
        definitions = known.columns if known is not None else None
        rules = column_rules(found.name, found.columns, definitions, self._choice)
        after = tuple(rule.after for rule in rules)
        optional = found.optional
        dimensions = [rule.dimension for rule in rules if rule.change == Change.VECTOR]
        if optional:
            optional = translate_metadata(metadata, found.columns, after, self._collation_of)
        optional += vector_dimensions(dimensions)
        made = found.with_columns(after, optional).encode()
        rows_are_same = all(rule.change == Change.NONE for rule in rules)
        is_same = rows_are_same and made == body
        return _ToldMap(made[_ID_BYTES:], ConvertedTable(found.name, made, is_same, rows_are_same, tuple(rules)))

    def _is_sequence(self, found: TableMap, names: list[bytes] | None) -> bool:
        """Return whether the rows are left out, by the definition or the configuration. Raises: Untranslatable where it is unknown."""
        fits = may_be_sequence(found, names)
        known = self.get(found.name)
        told = known.kind if known is not None else self._told_kinds.get(named(found.name))
        if told == "sequence" and not fits:
            raise definition_stops.not_the_sequence(found.name)
        if told is None and fits:
            raise definition_stops.sequence_unknown(found.name)
        return told == "sequence"
