"""What replicas say of their channels, in the columns of each server, and which channel leads to the relay."""

from typing import Any

import pytest

from relay.applying.replica_channel import FollowedRelay, ReplicaChannel, channel_of, channel_to

OLD: dict[str, Any] = {
    "Slave_IO_State": "Waiting", "Master_Host": "relay", "Master_Port": 3307, "Master_User": "replica", "Slave_IO_Running": "Yes",
    "Slave_SQL_Running": "No", "Relay_Master_Log_File": "mysql-bin.000007", "Exec_Master_Log_Pos": 4711, "Last_IO_Errno": 0,
    "Last_IO_Error": "", "Last_SQL_Errno": 0, "Last_SQL_Error": "", "Seconds_Behind_Master": None, "SQL_Delay": 0,
}  # fmt: skip


def newer(name: str) -> str:
    return name.replace("Master", "Source").replace("Slave_", "Replica_")


NEW = {newer(name): value for name, value in OLD.items()} | {
    "Auto_Position": 0,
    "Executed_Gtid_Set": "",
    "Channel_Name": "",
}
MARIADB = OLD | {"Connection_name": "", "Using_Gtid": "No", "Gtid_Slave_Pos": "0-1-7"}


@pytest.mark.parametrize("row", [OLD, NEW, MARIADB], ids=["5.6", "9.7", "MariaDB"])
def test_the_same_is_read_from_the_row_of_every_server(row: dict[str, Any]) -> None:
    found = channel_of(row)
    assert (found.source, found.user, found.receives, found.applies) == ("relay:3307", "replica", "Yes", False)
    assert (found.file, found.offset, found.gtids, found.seconds_behind) == ("mysql-bin.000007", 4711, None, None)


@pytest.mark.parametrize(
    ("row", "gtids"),
    [
        (NEW | {"Auto_Position": 1, "Executed_Gtid_Set": "a:1-7"}, "a:1-7"),
        (NEW | {"Auto_Position": "1", "Executed_Gtid_Set": ""}, ""),
        (MARIADB | {"Using_Gtid": "Slave_Pos"}, "0-1-7"),
        (MARIADB | {"Using_Gtid": "Current_Pos"}, "0-1-7"),
    ],
)
def test_gtids_are_those_of_a_replica_that_follows_by_them(row: dict[str, Any], gtids: str) -> None:
    assert channel_of(row).gtids == gtids


def test_an_error_is_shown_on_one_line_and_without_passwords() -> None:
    failed = "Query: 'CREATE USER x IDENTIFIED BY 'hunter2''\x1b[2J\n" + "x" * 9000
    error = channel_of(OLD | {"Last_SQL_Errno": 1396, "Last_SQL_Error": failed}).error
    assert error.startswith("1396 ") and error.isprintable() and len(error) <= 600
    assert "hunter2" not in error


def test_an_error_of_receiving_is_shown_where_applying_has_none() -> None:
    assert channel_of(OLD | {"Last_IO_Errno": 1236, "Last_IO_Error": "gone"}).error == "1236 gone"


def channel(name: str, port: int = 3307, user: str = "replica") -> ReplicaChannel:
    return channel_of(OLD | {"Connection_name": name, "Master_Port": port, "Master_User": user})


RELAY = FollowedRelay(3307, {"replica": None, "gtid": "view"}, {(97, "replica")})


@pytest.mark.parametrize(
    ("channels", "chosen"),
    [
        ([channel("source", 3306), channel("relay")], "relay"),
        ([channel("stranger", 3307, "repl"), channel("relay")], "relay"),
        ([channel("view", 3307, "gtid"), channel("relay")], "relay"),
        ([channel("forwarded", 13307)], "forwarded"),
        ([channel("forwarded", 13307, "gtid")], None),
        ([channel("stranger", 3307, "repl")], None),
        ([], None),
    ],
)
def test_the_channel_is_the_one_that_leads_to_the_relay(channels: list[ReplicaChannel], chosen: str | None) -> None:
    found = channel_to(RELAY, 97, channels)
    assert (None if found is None else found.name) == chosen
