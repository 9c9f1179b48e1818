"""The choice of the tables that are fed."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from protocol.errors import ExitCode, RelayError
from protocol.sql.tables.source_table import TableName
from relay.config.table_patterns import named_schemas, names_table

_NEVER: Final = frozenset(("mysql", "information_schema", "performance_schema", "sys", ""))


@dataclass(frozen=True, slots=True)
class FedTables:
    """The choice of the tables that are fed: patterns of SCHEMA.TABLE with * and ?."""

    tables: tuple[str, ...] = ("*.*",)
    exclude: tuple[str, ...] = ()

    def __call__(self, key: TableName) -> bool:
        """Return whether a table is fed."""
        return key[0].lower() not in _NEVER and names_table(self.tables, key) and not names_table(self.exclude, key)

    @property
    def schemas(self) -> list[str] | None:
        """Return the schemas whose rows are read; None means all."""
        return named_schemas(self.tables)

    def unmatched(self, known: Collection[TableName]) -> list[str]:
        """Return the patterns of `tables` that name none of the known tables. If no table is known, nothing is said of them."""
        return [one for one in self.tables if known and not any(names_table((one,), key) for key in known)]


class NothingMatches(RelayError):
    """The error that patterns of `tables` name no table of the archive."""

    exit_code = ExitCode.FINDINGS

    def __init__(self, patterns: list[str]) -> None:
        super().__init__(
            f"No table of the archive matches {', '.join(map(repr, patterns))} of `tables` in feed.toml.",
            "Correct the pattern, or take it away; it is SCHEMA.TABLE in the source's own case, with * and ?.",
        )
