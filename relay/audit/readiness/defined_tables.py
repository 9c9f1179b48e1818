"""The facts of Table_maps about tables: column types of old formats, and keys."""

from dataclasses import dataclass
from typing import Final

from protocol.binlog.table_map import MetadataKind, decode_table_map
from protocol.columns.codes import column_codes as codes
from protocol.errors import ProtocolError
from relay.audit.readiness.check import BOTH, MARIADB, Check, Effect

# fmt: off
OLD_TEMPORAL: Final = Check("old_temporal_types", Effect.MAY_DIFFER, "Columns of old temporal types",
    "MySQL 5.6.4 and later (TIME, DATETIME, TIMESTAMP without fractions, as 5.5 stored them); refused in tables by 8.0",
    "Row events are converted while they are applied. Data files with such columns cannot be moved to MySQL 8.0: make the tables "
    "again (ALTER TABLE … FORCE) on 5.6 or 5.7, or restore a dump.",
    "MySQL 8.0 manual, Preparing Your Installation for Upgrade", BOTH)
OLD_DECIMAL: Final = Check("old_decimal", Effect.MAY_DIFFER, "DECIMAL columns as MySQL 4.1 stored them", "MySQL 5.0.3 and later",
    "The values are text, and the replica's column has another format: rebuild the table on the source before it is replicated.",
    "MySQL 5.0 manual, Changes in Decimal Data Type Characteristics", BOTH)
OLD_VARCHAR: Final = Check("old_varchar", Effect.MAY_DIFFER, "VARCHAR columns as MySQL 4.1 stored them", "MySQL 5.0.3 and later",
    "Blanks at the end are cut there and kept by a newer table. Rebuild the table on the source (ALTER TABLE … FORCE).",
    "MySQL 5.0 manual, The CHAR and VARCHAR Types", BOTH)
COMPRESSED_COLUMNS: Final = Check("compressed_columns", Effect.TO_KNOW, "Compressed columns", "every MySQL",
    "Only MariaDB 10.3 and later has these column types.",
    "MariaDB manual, Storage-Engine Independent Column Compression", (MARIADB,))
NO_PRIMARY_KEY: Final = Check("no_primary_key", Effect.MAY_DIFFER, "Tables without a primary key", "every version, with row format",
    "Every changed row costs a search through the table. With sql_require_primary_key=ON, in Group Replication and in Galera such "
    "tables are refused, or their replicas may differ.",
    "MySQL 8.0 manual, sql_require_primary_key", BOTH)
PRIMARY_KEY_UNKNOWN: Final = Check("primary_key_unknown", Effect.TO_KNOW, "Tables of which nobody told whether they have a primary key",
    "every version, with row format",
    "Events tell it with binlog_row_metadata=FULL (MySQL 8.0, MariaDB 10.5), and the relay records it where it may read the "
    "source's information_schema. For these tables neither is there.",
    "the archive", BOTH)
SYSTEM_TABLE_ROWS: Final = Check("system_table_rows", Effect.MAY_DIFFER, "Rows of tables in schema mysql", "every newer version",
    "These tables have other columns in every version: the replica stops with error 1677 or 1146 where they do not fit.",
    "MySQL and MariaDB manuals, system tables", BOTH)
ZERO_DATE_ROWS: Final = Check("zero_date_rows", Effect.MAY_DIFFER, "Dates with zero parts in rows",
    "MySQL 5.7 and later, MariaDB 10.2 and later: by default strict, MySQL also NO_ZERO_DATE",
    "Replicas apply such rows. But ALTER TABLE, a dump's restore and every program that writes to the new server with its default "
    "sql_mode fail. Replace them by NULL.",
    "MySQL 8.0 manual, sql_mode", BOTH)
MIXED_ENGINES: Final = Check("mixed_engines", Effect.MAY_DIFFER, "Transactions that change transactional and other tables",
    "every version",
    "What a transaction did to tables without transactions stays when it is rolled back, or when a replica crashes in it. Convert "
    "the tables to InnoDB. The audit `mixing` looks closer. Those that stop a MySQL replica with GTIDs are `view_stops`, and not "
    "counted here; of tables that were made before the archive a view knows the engines by known_engines.",
    "MySQL 8.0 manual, Replication and Transactions; WL#2687", BOTH)
# fmt: on
OF_TYPES: Final = (OLD_TEMPORAL, OLD_DECIMAL, OLD_VARCHAR, COMPRESSED_COLUMNS)
"""The checks for which column types give reason."""

_OLD_TEMPORAL: Final = frozenset((codes.FIELD_TIMESTAMP, codes.FIELD_TIME, codes.FIELD_DATETIME))
_TEMPORAL: Final = frozenset(
    (
        codes.FIELD_TIMESTAMP, codes.FIELD_DATE, codes.FIELD_DATETIME, codes.FIELD_NEWDATE, codes.FIELD_TIMESTAMP2,
        codes.FIELD_DATETIME2,
    )
)  # fmt: skip
_PRIMARY_KEYS: Final = (MetadataKind.SIMPLE_PRIMARY_KEY, MetadataKind.PRIMARY_KEY_WITH_PREFIX)


@dataclass(frozen=True, slots=True)
class MappedTable:
    """The relevant facts of a table. `has_primary_key` is None if the event does not contain it."""

    types: bytes
    has_primary_key: bool | None

    def checks(self) -> list[Check]:
        """Return the checks for which the column types give reason."""
        types = frozenset(self.types)
        found = []
        if types & _OLD_TEMPORAL:
            found.append(OLD_TEMPORAL)
        if codes.FIELD_DECIMAL in types:
            found.append(OLD_DECIMAL)
        if codes.FIELD_VAR_STRING in types:
            found.append(OLD_VARCHAR)
        if types & {codes.FIELD_BLOB_COMPRESSED, codes.FIELD_VARCHAR_COMPRESSED}:
            found.append(COMPRESSED_COLUMNS)
        return found

    @property
    def has_dates(self) -> bool:
        """True if a column may contain a date."""
        return bool(_TEMPORAL.intersection(self.types))


def read_table_map(body: bytes) -> MappedTable:
    """Read a Table_map's body from its flags on. Raises: Malformed."""
    table = decode_table_map(body, 0)
    types = table.types
    try:
        told = {kind for kind, _value in table.optional_fields()}
    except ProtocolError:
        return MappedTable(types, None)
    # MINIMAL contains neither names nor keys; FULL contains both
    known = MetadataKind.COLUMN_NAME in told
    return MappedTable(types, not told.isdisjoint(_PRIMARY_KEYS) if known else None)
