"""A real MariaDB, a relay with a view of it, and real MySQL 9.7 replicas of that view."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from deploy.servers import Server
from tests.support.hex_values import check_equal_bytes
from tests.support.mariadb_envelope import domain_uuid
from tests.support.mariadb_workload import KEYS_LEFT_OUT
from tests.support.view_chain import UUID_OF_VIEW, ViewChain, executed_by, view_keys, wait_executed

SOURCES: Final = ("mariadb", "mariadb118")
# MariaDB rotates at 4 KiB and more; groups of commits, as with many clients on a slow disk.
SOURCE_OPTIONS: Final = ("--max-binlog-size=1M", "--binlog-commit-wait-count=4", "--binlog-commit-wait-usec=2000")


def mariadb_chain(
    servers: Callable[[str], Server],
    name: str,
    directory: Path,
    *,
    options: Sequence[str] = SOURCE_OPTIONS,
    sections: dict[str, dict[str, Any]] | None = None,
    **keys: Any,
) -> ViewChain:
    """Return a chain with one view of a MariaDB; `keys` are added to its [[view]]."""
    return ViewChain(servers, name, directory, options=options, views=[view_keys(**keys)], sections=sections)


def check_mariadb_replica(
    chain: ViewChain, replica: Server, databases: Sequence[str], keys_left_out: Iterable[str] = KEYS_LEFT_OUT
) -> int:
    """Wait until the replica has the whole view; the bytes of its tables must be the source's, its GTIDs the view's, without gaps in a
    domain. Returns how many values were compared."""
    chain.wait_viewed()
    wait_executed(replica, chain.gtids_of_view(), chain.relay)
    compared = check_equal_bytes(chain.source, replica, databases, keys_left_out=keys_left_out)
    assert executed_by(replica) == chain.gtids_of_view()
    for domain, last in last_of_domains(chain.source).items():
        wanted = f"{domain_uuid(UUID_OF_VIEW, domain)}:1-{last}"
        assert replica.sql(f"SELECT GTID_SUBSET('{wanted}', @@GLOBAL.gtid_executed)") == [(1,)], (
            f"{wanted} is not all in {executed_by(replica)}"
        )
    return compared


def last_of_domains(source: Server) -> dict[int, int]:
    """Return the newest number in the source's binlogs by domain."""
    found: dict[int, int] = {}
    for gtid in str(source.sql("SELECT @@GLOBAL.gtid_binlog_pos")[0][0]).split(","):
        domain, _server, number = gtid.split("-")
        found[int(domain)] = int(number)
    return found
