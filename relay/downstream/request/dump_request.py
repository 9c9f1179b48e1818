"""A dump request, with what its connection has said before it."""

from dataclasses import dataclass

from protocol.auth.account import Account
from protocol.commands import BinlogDump
from protocol.gtid.dump_request import BinlogDumpGtid
from protocol.resultset import Value
from protocol.semisync import wants_semi_sync
from protocol.statements import SourceFacts
from relay.archive.storage.replica_marks import ReplicaIdentity


@dataclass(frozen=True, slots=True)
class DumpRequest:
    """What a client asks for, and who it is.

    command: as it was decoded. variables: its user variables. facts: the source as it was greeted with. registered: the
    server_id that it registered as a replica with, None: it did not. uuid: empty for replicas without one.
    """

    command: BinlogDump | BinlogDumpGtid
    variables: dict[str, Value]
    facts: SourceFacts
    account: Account | None
    registered: int | None
    uuid: str

    @property
    def identity(self) -> ReplicaIdentity | None:
        """By which the archive remembers what was sent to it; None for a client that is no replica."""
        return ReplicaIdentity(self.command.server_id, self.uuid) if self.command.server_id else None

    @property
    def by_gtid(self) -> bool:
        """Whether it says by GTID what it has. A MariaDB replica of a MySQL source has no GTIDs to ask by."""
        return isinstance(self.command, BinlogDumpGtid) or (
            self.facts.is_mariadb and self.variables.get("slave_connect_state") is not None
        )

    @property
    def wants_semi_sync(self) -> bool:
        """Whether it is to be asked for acknowledgements."""
        return self.facts.semi_sync and wants_semi_sync(self.variables) and not self.command.ends_at_end

    @property
    def markers(self) -> str:
        """What its account is sent of boundary markers."""
        return self.account.markers if self.account is not None else "tbm"
