"""A dump request, with what its connection has said before it."""

from dataclasses import dataclass

from protocol.auth.account import Account
from protocol.commands import BinlogDump, DumpFlag
from protocol.gtid.dump_request import BinlogDumpGtid
from protocol.resultset import Value
from protocol.semisync import wants_semi_sync
from protocol.statements import SourceFacts
from relay.archive.storage.replica_marks import ReplicaIdentity


@dataclass(frozen=True, slots=True)
class DumpRequest:
    """The request of a client, and its identity.

    command: the decoded command. variables: its user variables. facts: the source's facts that it was greeted with. registered: the
    server_id that it registered as a replica with, None: it did not. uuid: empty for replicas without one. has_spoken: whether
    anything came before the request that a client library does not send by itself.
    """

    command: BinlogDump | BinlogDumpGtid
    variables: dict[str, Value]
    facts: SourceFacts
    account: Account | None
    registered: int | None
    uuid: str
    has_spoken: bool = True

    @property
    def identity(self) -> ReplicaIdentity | None:
        """The identity under which the archive remembers what was sent to it; None for a client that is no replica."""
        if not self.command.server_id:
            return None
        return ReplicaIdentity.of(
            self.command.server_id, self.uuid, self.account.user if self.account is not None else ""
        )

    @property
    def is_of_a_library(self) -> bool:
        """True if the replica's client library asks, on a connection of its own.

        When the connection breaks between the set-up and the request, the libraries of MySQL's and MariaDB's servers reconnect
        without informing the replica and send the request there, with `SET NAMES` at most before it. Every replica, mysqlbinlog and
        other reader sends something on the connection that it asks on. Checked on MySQL 5.6 and MariaDB 10.11 and 11.8.
        """
        return self.command.server_id != 0 and not self.has_spoken

    @property
    def by_gtid(self) -> bool:
        """True if it reports by GTID what it has. A MariaDB replica of a MySQL source has no GTIDs to ask by."""
        return isinstance(self.command, BinlogDumpGtid) or (
            self.facts.is_mariadb and self.variables.get("slave_connect_state") is not None
        )

    @property
    def wants_semi_sync(self) -> bool:
        """True if it must be asked for acknowledgements."""
        return self.facts.semi_sync and wants_semi_sync(self.variables) and not self.command.ends_at_end

    @property
    def wants_annotations(self) -> bool:
        """True if it is sent MariaDB's Annotate_rows. A replica that does not ask for them gets none, as from a source.

        In a request of MySQL's the same flag means something else, and its streams have no such events. Source: MariaDB 11.8
        `sql_repl.cc (send_event_to_slave)`.
        """
        command = self.command
        return isinstance(command, BinlogDump) and bool(command.flags & DumpFlag.HEARTBEAT_V2_OR_ANNOTATE)

    @property
    def markers(self) -> str:
        """The boundary markers that its account is sent."""
        return self.account.markers if self.account is not None else "tbm"
