"""What a replica says of one of its channels (MariaDB: connections), and which of them leads to this relay."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from protocol.printable import printable
from protocol.show_columns import older_column
from protocol.statements.session.secrets import part_without_secrets

_LONGEST_NAME: Final = 96
_LONGEST_ERROR: Final = 600
_USES_GTIDS: Final = ("1", "slave_pos", "current_pos")


@dataclass(frozen=True, slots=True)
class ReplicaChannel:
    """One channel. host, port, user: the source that it follows, as the replica calls it. file, offset: up to where it has applied.

    receives: "Yes", "Connecting" or "No". gtids: what the replica has, if it follows by GTID; None: it does not. seconds_behind: what
    the replica says; None: it says nothing, as while it applies nothing.
    """

    name: str
    host: str
    port: int
    user: str
    receives: str
    applies: bool
    file: str
    offset: int
    gtids: str | None
    seconds_behind: int | None
    delay_s: int
    error: str

    @property
    def source(self) -> str:
        """The source that it follows."""
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class FollowedRelay:
    """What a channel to this relay has. views: what each account of relay.toml is served; None: the source's binlogs. connected:
    server_id and account of the replicas that are connected now."""

    port: int
    views: Mapping[str, str | None]
    connected: Collection[tuple[int, str]] = ()


def channel_of(row: Mapping[str, Any]) -> ReplicaChannel:
    """Return the channel of a row of SHOW REPLICA STATUS, or of one of its older forms. Raises: ValueError, TypeError, KeyError for a
    row that no server has."""
    found = {older_column(name): value for name, value in row.items()}
    by_gtid = str(found.get("Auto_Position", found.get("Using_Gtid")) or "").lower() in _USES_GTIDS
    gtids = found.get("Executed_Gtid_Set", found.get("Gtid_Slave_Pos"))
    error = str(found.get("Last_SQL_Error") or found.get("Last_IO_Error") or "")
    number = found.get("Last_SQL_Errno") if found.get("Last_SQL_Error") else found.get("Last_IO_Errno")
    behind = found.get("Seconds_Behind_Master")
    return ReplicaChannel(
        name=printable(str(found.get("Channel_Name", found.get("Connection_name")) or ""), _LONGEST_NAME),
        host=printable(str(found["Master_Host"]), _LONGEST_NAME),
        port=int(found["Master_Port"]),
        user=printable(str(found["Master_User"]), _LONGEST_NAME),
        receives=_receives(str(found["Slave_IO_Running"])),
        applies=str(found["Slave_SQL_Running"]) == "Yes",
        file=printable(str(found.get("Relay_Master_Log_File") or ""), _LONGEST_NAME),
        offset=int(found.get("Exec_Master_Log_Pos") or 0),
        gtids=str(gtids or "") if by_gtid else None,
        seconds_behind=None if behind is None else int(behind),
        delay_s=int(found.get("SQL_Delay") or 0),
        # The text contains the statement that failed, which may set a password.
        error=printable(f"{number} {part_without_secrets(error, error)}", _LONGEST_ERROR) if error else "",
    )


def _receives(said: str) -> str:
    return said if said in ("Yes", "No") else "Connecting"  # MariaDB also has "Preparing"


def channel_to(relay: FollowedRelay, server_id: int, channels: Sequence[ReplicaChannel]) -> ReplicaChannel | None:
    """Return the channel that leads to the relay; None: none does.

    The replica's name for the relay's host says nothing here. Its port may be another one, where a port is forwarded: then the replica
    must be connected now, by the account that the channel has.
    """
    fit = [one for one in channels if one.user in relay.views]
    exact = [one for one in fit if one.port == relay.port]
    connected = [one for one in exact or fit if (server_id, one.user) in relay.connected]
    return next(iter(connected or exact), None)
