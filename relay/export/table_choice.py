"""The choice of an export's tables, and the decision whether a statement concerns one of them, none, or is undecidable."""

from dataclasses import dataclass
from typing import Final

from protocol.sql.kind import Purpose, kind_of
from protocol.sql.statements.statement_names import defined_names
from relay.export.export_errors import ExportRefused

_SCHEMA_WORDS: Final = frozenset(("database", "schema"))
_ALL: Final = "*"


@dataclass(frozen=True, slots=True)
class TableChoice:
    """Tables by (schema, name); the name "*" means all tables of the schema. They are written as servers write them, with their
    case."""

    tables: frozenset[tuple[str, str]]

    @classmethod
    def from_texts(cls, texts: tuple[str, ...]) -> "TableChoice":
        """Parse shop.orders, shop.* and several of them with commas. Raises: ExportRefused."""
        found = set()
        for text in texts:
            for part in text.split(","):
                name = part.strip()
                if not name:
                    continue
                schema, dot, table = name.partition(".")
                schema, table = schema.strip("`"), table.strip("`")
                if not dot or not schema or not table:
                    raise ExportRefused(f"--tables {name}: write SCHEMA.TABLE, such as shop.orders, or shop.* for all.")
                found.add((schema, table))
        if not found:
            raise ExportRefused("--tables names no table: it takes shop.orders, shop.* or several with commas.")
        return cls(frozenset(found))

    def wants(self, schema: str, table: str) -> bool:
        """Return whether rows of this table are exported."""
        return (schema, table) in self.tables or (schema, _ALL) in self.tables

    def is_about(self, default_schema: str, text: bytes, sql_mode: int, server_version: str) -> bool | None:
        """Return whether a statement defines or empties one of the tables, by its words; None if that is unknown.

        In doubt a statement counts as concerning one: a statement that names one of them beside others does.
        """
        kind = kind_of(text, server_version)
        if kind.purpose is Purpose.UNSURE or not kind.may_commit:
            return None
        words = defined_names(text, sql_mode)
        if words is None:
            return None
        for schema, table in self.tables:
            named = schema.lower() in words
            if _SCHEMA_WORDS & words and named:
                return True
            in_schema = named or schema.lower() == default_schema.lower()
            if in_schema and (table == _ALL or table.lower() in words):
                return True
        return False

    def __str__(self) -> str:
        return ", ".join(f"{schema}.{table}" for schema, table in sorted(self.tables))
