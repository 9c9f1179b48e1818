"""What a view is to be: the settings that its bytes depend on."""

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
"""Whose replicas a view may be for, oldest first."""
MARIADB: Final = "mariadb"
"""The flavour of a source whose binlogs are translated as a whole."""
FIRST_FOR_MARIADB: Final = (8, 0)
"""The first version whose replicas a view of MariaDB may be for."""
_NAMESPACE: Final = UUID("6f0f3cb2-6d0c-5a43-9c63-0f4e3d1f5a16")

FIRST_GNO: Final = 1
"""Of the first GTID that a view assigns."""


@dataclass(frozen=True, slots=True)
class ViewStart:
    """Where a view begins that does not begin with the archive: its first transaction there gets the number `next_gno`."""

    position: Position
    next_gno: int = FIRST_GNO


@dataclass(frozen=True, slots=True)
class ViewSettings:
    """A function of these and the archive are the view's bytes.

    gtids: assign: GTIDs for transactions that have none, of `uuid`; anonymous: Anonymous_gtid events; keep: as the source.
    target: one of TARGETS. engines: innodb: tables without transactions become InnoDB. account_statements: skip: a
    transaction without statements stands for CREATE USER, GRANT and so on. explicit_timestamps: what the source's
    explicit_defaults_for_timestamp is, where its binlogs do not say it (before 8.0). collations: a collation's number in the
    source for one that the target has. foreign_keys: who carries them out on replicas from 9.6 on. plain_tables: from before the
    archive, without foreign keys to them that delete or change rows, and without DELETE triggers. start: None: with the archive.
    dependencies: which transactions wait for which, as GTID events say it: serial: as the source said, else each for the one before it;
    writeset: by the rows that they change, too. flavour: of the source, "mysql" or "mariadb".
    json_columns: of a MariaDB source: what columns of type JSON become. known_kinds: of it, which tables from before the archive are
    sequences.
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
    start: ViewStart | None = None
    dependencies: DependencyPolicy = "serial"
    flavour: str = "mysql"
    json_columns: JsonPolicy = "longtext"
    known_kinds: Mapping[str, TableKind] = field(default_factory=dict)

    @property
    def counts(self) -> bool:
        """Whether the numbers of the GTIDs that it assigns are counted by the view: 1, 2, 3 … Those of a MariaDB source have theirs."""
        return self.gtids == "assign" and self.flavour != MARIADB

    @property
    def mysql_version(self) -> str:
        """The version that a MariaDB source has in the view: that of its replicas, which is none that anybody released."""
        return f"{self.target.removeprefix('mysql-')}.0-view"

    @property
    def target_version(self) -> tuple[int, int]:
        """As (9, 7)."""
        major, minor = self.target.partition("-")[2].split(".")
        return int(major), int(minor)


def derived_uuid(flavour: str, server_id: int, server_uuid: str | None) -> UUID:
    """The uuid of a source's assigned GTIDs, where none is configured: the same for each relay behind that source."""
    return uuid5(_NAMESPACE, f"{flavour} {server_id} {server_uuid or ''}")
