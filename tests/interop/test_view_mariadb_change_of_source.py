"""A relay with a view of a MariaDB that goes over to a promoted replica of it: replicas of the view notice nothing, by GTID."""

from pathlib import Path
from typing import Any

import pytest

from deploy.servers import Server
from protocol.gtid.gtid_set import GtidSet
from relay.view.generations.view_generations import made_generations
from relay.view.inspect.made_again import made_again
from relay.view.inspect.named_view import named_view
from relay.view.inspect.view_comparison import differences
from relay.view.inspect.view_listing import files_of
from relay.view.rules.mariadb.assigned_gtids import domain_uuid
from tests.conftest import ServerFactory
from tests.support.chain import wait_until
from tests.support.free_port import free_port
from tests.support.hex_values import check_equal_bytes
from tests.support.mariadb_view import SOURCES, last_of_domains
from tests.support.mariadb_workload import KEYS_LEFT_OUT
from tests.support.relay_process import RelayProcess, wait_for_line
from tests.support.view_chain import (
    REPLICA_DEFAULTS,
    UUID_OF_VIEW,
    VIEW,
    account_of,
    add_views,
    follow,
    listen_with_tls,
    settings_of,
    view_keys,
    wait_executed,
)

pytestmark = pytest.mark.interop
KEYS = view_keys()
OPTIONS = ("--log-slave-updates", "--binlog-format=ROW")


def pair(servers: ServerFactory, name: str) -> tuple[Server, Server]:
    """A source, and a replica of it that takes its place. Their files of one name have other transactions, and a domain has a hole."""
    first, second = (servers(name).start(server_id=number, options=OPTIONS) for number in (1, 2))
    second.sql("FLUSH BINARY LOGS")
    user = f"MASTER_USER='{first.replication_user}', MASTER_PASSWORD='{first.replication_password}'"
    second.sql(f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={first.port}, {user}, MASTER_USE_GTID=slave_pos")
    second.start_replica()
    first.execute_many(
        ["CREATE DATABASE d", "SET SESSION gtid_domain_id = 5", "SET SESSION gtid_seq_no = 40", "CREATE DATABASE e"]
    )
    insert(first, 0)
    second.wait_for_source(first)
    second.sql("FLUSH BINARY LOGS")
    insert(first, 100)
    return first, second


def insert(server: Server, begin: int) -> None:
    server.execute_many([
        f"CREATE OR REPLACE TABLE d.t{begin} (a INT PRIMARY KEY, u UUID, j JSON)",
        *(f"INSERT INTO d.t{begin} VALUES ({key}, UUID(), '[{key}, 1.50]')" for key in range(20)),
        f"CREATE OR REPLACE TABLE d.r (a INT PRIMARY KEY) SELECT a FROM d.t{begin}",
        "SET SESSION gtid_domain_id = 5", f"UPDATE d.t{begin} SET u = NULL WHERE a < 5", "SET SESSION gtid_domain_id = 0",
        f"XA START 'x{begin}'", f"DELETE FROM d.t{begin} WHERE a = 10", f"XA END 'x{begin}'", f"XA PREPARE 'x{begin}'",
        f"XA COMMIT 'x{begin}'",
    ])  # fmt: skip


def promote(relay: RelayProcess, first: Server, second: Server) -> None:
    """`second` goes on with writing, and the relay with it. What it wrote of `first` comes again, and is known by its GTIDs."""
    second.wait_for_source(first)
    first.kill()
    second.stop_replica()
    insert(second, 200)
    relay.sql("STOP SLAVE")
    relay.sql(f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={second.port}")
    relay.sql("START SLAVE")


def relay_with_view(directory: Path, source: Server, keys: dict[str, Any]) -> RelayProcess:
    sections = {"[account]": {"admin": True}, "listen": listen_with_tls(directory)}
    relay = RelayProcess(directory / "relay", source, port=free_port(), sections=sections)
    add_views(relay, [keys])
    return relay


def of_view(relay: RelayProcess) -> str:
    ((found,),) = relay.sql("SELECT @@GLOBAL.gtid_executed", account_of(VIEW))
    return str(found).replace("\n", "")


def check(relay: RelayProcess, source: Server, *followers: Server) -> None:
    """All of the source is in the view, and they have it."""
    lasts = last_of_domains(source)
    ends = {f"{domain_uuid(UUID_OF_VIEW, domain)}": last for domain, last in lasts.items()}

    def is_made() -> bool:
        made = GtidSet.from_text(of_view(relay))
        return all(GtidSet.from_text(f"{uuid}:{last}") <= made for uuid, last in ends.items())

    wait_until(is_made, f"the view has {ends}:\n{relay.log_tail()}", 60)
    for follower in followers:
        wait_executed(follower, of_view(relay), relay, 60)
        check_equal_bytes(source, follower, ["d"], keys_left_out=KEYS_LEFT_OUT)
        assert not follower.sql("XA RECOVER")


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("name", SOURCES)
def test_replicas_of_the_view_go_on_with_a_promoted_replica(
    name: str, killed: bool, servers: ServerFactory, tmp_path: Path
) -> None:
    first, second = pair(servers, name)
    with relay_with_view(tmp_path, first, KEYS) as relay:
        wait_for_line(relay, "view_served")
        follower = servers("mysql97").start(server_id=10, options=REPLICA_DEFAULTS)
        follow(follower, relay.port)
        check(relay, first, follower)
        promote(relay, first, second)
        view = relay.archive / "views" / VIEW
        if killed:
            wait_until((view / "g0002").exists, f"the view goes over:\n{relay.log_tail()}", 30)
            relay.kill()
            relay.start()
        check(relay, second, follower)
        second.sql("FLUSH BINARY LOGS")
        insert(second, 300)
        late = servers("mysql97").start(server_id=11, options=REPLICA_DEFAULTS)
        follow(late, relay.port)
        check(relay, second, follower, late)
        assert not relay.logged("view_stopped")
        # The hole is one in both generations.
        assert f"{domain_uuid(UUID_OF_VIEW, 5)}:40-" in of_view(relay)
        assert relay.stop() == 0
        found = named_view(relay.archive, settings_of(KEYS, "mariadb"))
        made = made_generations(found.archive, found.directory)
        assert [(one.number, one.source_number) for one in made] == [(1, 1), (2, 2)]
        for one in made:
            assert list(differences(one.directory, files_of(one.directory), made_again(found, one))) == []


def test_a_view_whose_rows_only_definitions_tell_stops_at_the_change(servers: ServerFactory, tmp_path: Path) -> None:
    first, second = pair(servers, "mariadb")
    with relay_with_view(tmp_path, first, view_keys(json_columns="binary")) as relay:
        wait_for_line(relay, "view_served")
        check(relay, first)
        promote(relay, first, second)
        wait_until(lambda: relay.logged("view_stopped"), f"the view stops:\n{relay.log_tail()}", 60)
        stop = relay.logged("view_stopped")[0]
        assert stop["reason"] == "source_changed", stop
        found = relay.command("view", "check", VIEW)
        assert found.returncode == 1 and "source_changed" in found.stdout, found.stdout + found.stderr
