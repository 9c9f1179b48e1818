"""The settings of a view, on which its bytes depend."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal
from uuid import UUID, uuid5

from protocol.position import Position

GtidPolicy = Literal["assign", "anonymous", "keep"]
EnginePolicy = Literal["keep", "innodb"]
AccountStatementPolicy = Literal["skip", "keep"]
ForeignKeyPolicy = Literal["server", "innodb"]
DependencyPolicy = Literal["serial", "writeset"]
JsonPolicy = Literal["longtext", "binary"]
TableKind = Literal["table", "sequence"]
TARGETS: Final = ("mysql-5.5", "mysql-5.6", "mysql-5.7", "mysql-8.0", "mysql-8.4", "mysql-9.7")
"""The versions of replicas that a view may be for, oldest first."""
MARIADB: Final = "mariadb"
"""The flavour of a source whose binlogs are translated as a whole."""
FIRST_FOR_MARIADB: Final = (8, 0)
"""The first version whose replicas a view of MariaDB may be for."""
_NAMESPACE: Final = UUID("6f0f3cb2-6d0c-5a43-9c63-0f4e3d1f5a16")

FIRST_GNO: Final = 1
"""The number of the first GTID that a view assigns."""


@dataclass(frozen=True, slots=True)
class ViewStart:
    """The place where a view begins that does not begin with the archive: its first transaction there gets the number `next_gno`."""

    position: Position
    next_gno: int = FIRST_GNO


@dataclass(frozen=True, slots=True)
class ViewSettings:
    """The settings that, with the archive, determine the view's bytes.

    `gtids`: assign: GTIDs of `uuid` for transactions that have none; anonymous: Anonymous_gtid events; keep: as the source. `target` is
    one of TARGETS. `engines`: with innodb, tables without transactions become InnoDB. `account_statements`: with skip, a transaction
    without statements replaces CREATE USER, GRANT and so on. `explicit_timestamps` is the source's explicit_defaults_for_timestamp
    where its binlogs do not say it (before 8.0). `collations` maps a collation's number in the source to one that the target has.
    `foreign_keys` says who executes them on replicas from 9.6 on. `accept` names constructs that the target may compute otherwise.
    `plain_tables` are from before the archive, have no DELETE triggers,
    and no foreign key to them deletes or changes rows. `start` None: the view begins with the archive. `dependencies` are the waits in
    GTID events: serial: as in the source, else each transaction waits for the one before it; writeset: also by the rows that they
    change. `flavour` is the source's, "mysql" or "mariadb". For a MariaDB source, `json_columns` says what columns of type JSON become,
    and `known_kinds` which tables from before the archive are sequences.
    """

    name: str
    gtids: GtidPolicy
    uuid: UUID
    target: str = "mysql-9.7"
    engines: EnginePolicy = "keep"
    account_statements: AccountStatementPolicy = "skip"
    explicit_timestamps: bool = False
    collations: Mapping[int, int] = field(default_factory=dict)
    known_engines: Mapping[str, str] = field(default_factory=dict)
    foreign_keys: ForeignKeyPolicy = "server"
    plain_tables: tuple[str, ...] = ()
    accept: tuple[str, ...] = ()
    start: ViewStart | None = None
    dependencies: DependencyPolicy = "serial"
    flavour: str = "mysql"
    json_columns: JsonPolicy = "longtext"
    known_kinds: Mapping[str, TableKind] = field(default_factory=dict)

    @property
    def counts(self) -> bool:
        """True if the view counts the numbers of the GTIDs that it assigns: 1, 2, 3 … A MariaDB source has its own numbers."""
        return self.gtids == "assign" and self.flavour != MARIADB

    @property
    def mysql_version(self) -> str:
        """The version that a MariaDB source has in the view: that of its replicas, which was never released."""
        return f"{self.target.removeprefix('mysql-')}.0-view"

    @property
    def target_version(self) -> tuple[int, int]:
        """The version of the target, as (9, 7)."""
        major, minor = self.target.partition("-")[2].split(".")
        return int(major), int(minor)


def derived_uuid(flavour: str, server_id: int, server_uuid: str | None) -> UUID:
    """Return the uuid of a source's assigned GTIDs, where none is configured: the same for each relay behind that source."""
    return uuid5(_NAMESPACE, f"{flavour} {server_id} {server_uuid or ''}")
