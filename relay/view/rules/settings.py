"""What a view is to be: the settings that its bytes depend on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal
from uuid import UUID, uuid5

from protocol.position import Position

GtidPolicy = Literal["assign", "anonymous", "keep"]
EnginePolicy = Literal["keep", "innodb"]
AccountStatementPolicy = Literal["skip", "keep"]
TARGETS: Final = ("mysql-5.5", "mysql-5.6", "mysql-5.7", "mysql-8.0", "mysql-8.4", "mysql-9.7")
"""Whose replicas a view may be for, oldest first."""
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
    source for one that the target has. start: None: with the archive.
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
    start: ViewStart | None = None

    @property
    def target_version(self) -> tuple[int, int]:
        """As (9, 7)."""
        major, minor = self.target.partition("-")[2].split(".")
        return int(major), int(minor)


def derived_uuid(flavour: str, server_id: int, server_uuid: str | None) -> UUID:
    """The uuid of a source's assigned GTIDs, where none is configured: the same for each relay behind that source."""
    return uuid5(_NAMESPACE, f"{flavour} {server_id} {server_uuid or ''}")
