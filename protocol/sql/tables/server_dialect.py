"""What a statement that defines tables means to one server and not to another: by its version and by what the event tells."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from protocol.binlog.schema.collation_names import compiled_collation
from protocol.sql.server_version import version_numbers
from protocol.sql.tables.source_table import RESTRICT

DefaultCollations = tuple[tuple[str, str], ...]
"""(character set, collation) of sets for which the statement's event names another collation than the one of old servers."""


UNKNOWN_RULE: Final = "?"


@dataclass(frozen=True)
class ServerDialect:
    """`version`: the server's that logged a statement; empty: not known. `explicit_timestamps`: its explicit_defaults_for_timestamp
    then; None: its event does not tell."""

    version: str
    collations: DefaultCollations = ()
    explicit_timestamps: bool | None = None

    @cached_property
    def mariadb(self) -> bool:
        """Whether it is MariaDB."""
        return "mariadb" in self.version.lower()

    @cached_property
    def numbers(self) -> tuple[int, int, int]:
        """Of the version; zeros: not known."""
        return version_numbers(self.version) if self.version else (0, 0, 0)

    def default_collation(self, charset: str) -> str:
        """The collation of texts of which only the character set is said; empty: not known."""
        told = dict(self.collations).get(charset)
        if told is not None:
            return told
        if charset == "utf8mb4" and not self.mariadb and (self.numbers >= (8, 0, 0) or not any(self.numbers)):
            return ""  # its events tell
        return compiled_collation(charset)

    @cached_property
    def collation_outlasts_charset(self) -> bool | None:
        """Whether COLLATE counts that stands before CHARACTER SET; None: not known."""
        if self.mariadb:
            return True if self.numbers >= (10, 11, 0) else None
        if not any(self.numbers):
            return None
        return True if self.numbers >= (9, 0, 0) else False if self.numbers < (5, 7, 0) else None

    @cached_property
    def takes_null_in_timestamps(self) -> bool:
        """Whether a TIMESTAMP column of which nobody says NULL or NOT NULL may be NULL. Not told: as servers of that version come."""
        if self.explicit_timestamps is not None:
            return self.explicit_timestamps
        return self.numbers >= ((10, 10, 0) if self.mariadb else (8, 0, 2))

    @cached_property
    def has_foreign_keys_of_columns(self) -> bool | None:
        """Whether REFERENCES in a column's definition makes a foreign key; None: not known."""
        if not any(self.numbers):
            return None
        return self.numbers >= ((10, 5, 0) if self.mariadb else (9, 0, 0))

    @cached_property
    def foreign_keys_are_called_as_their_indexes(self) -> bool:
        """Whether FOREIGN KEY NAME (…) is called NAME: elsewhere only CONSTRAINT names it."""
        return self.mariadb

    def match_forgets_rules(self, *, alters: bool) -> bool | None:
        """Whether MATCH makes a foreign key without ON DELETE and ON UPDATE, whatever it says of these; None: not known.

        MySQL before 8.0 reads the text of a CREATE twice, the second time in InnoDB, which goes no further than to MATCH; of
        an ALTER it does so where it copies the table.
        """
        if self.mariadb:
            return False if self.numbers >= (10, 11, 0) else None
        if self.numbers >= (8, 0, 0):
            return False
        return None if alters or not any(self.numbers) else True

    def foreign_key_rule(self, said: str) -> str:
        """What a foreign key does, by what its definition says: empty, or the words behind ON DELETE and ON UPDATE."""
        if said == UNKNOWN_RULE:
            return said
        if not said:
            return "NO ACTION" if not self.mariadb and self.numbers >= (8, 0, 0) else RESTRICT
        return RESTRICT if said == "SET DEFAULT" and self.mariadb else said
