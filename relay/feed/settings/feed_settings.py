"""The settings that say how tables are fed: what is kept of them, and what happens with what cannot be kept."""

from dataclasses import dataclass
from typing import Final

from protocol.sql.tables.source_table import TableName
from relay.config.table_patterns import names_table

CURRENT: Final = "current"
STOP_TABLE: Final = "stop-table"
"""This value of `on_trouble` sets a table aside that cannot be fed further; the others go on."""
HISTORY: Final = "changes"


@dataclass(frozen=True, slots=True)
class FeedSettings:
    """The settings for feeding tables. With `every_statement` a change in statement format makes all tables stale, not only those it
    names.

    `no_cascades` are patterns of tables without foreign keys that change their rows. `trusted_images` are patterns of tables of a
    MariaDB to which no trigger and no stored function writes.
    """

    modes: tuple[str, ...] = (CURRENT, HISTORY)
    every_statement: bool = True
    assume_empty: bool = False
    no_cascades: tuple[str, ...] = ()
    trusted_images: tuple[str, ...] = ()
    on_trouble: str = STOP_TABLE
    invalid_dates: str = "stop"

    def has_no_cascades(self, key: TableName) -> bool:
        """Return whether the operator declared that a table has no foreign keys that change its rows."""
        return names_table(self.no_cascades, key)

    def trusts_images(self, key: TableName) -> bool:
        """Return whether the operator declared that no trigger and no stored function writes to a table."""
        return names_table(self.trusted_images, key)
