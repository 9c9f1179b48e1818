"""Servers of one's own start and replicate as those of the package sources: installed ones by another way, and all that are named."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.servers import OWN, Server
from deploy.servers.own_servers import PREFIX, own_servers
from tests.conftest import ServerFactory, need_server
from tests.interop.conftest import ChainFactory
from tests.support.view_trial import ViewTrial
from tests.support.workload import DATABASE, light_workload

pytestmark = pytest.mark.interop


def directory_of(name: str) -> Path:
    """The installation of a packaged server, as somebody would name it."""
    server = need_server(name)
    program = Path(server.program()[-1])
    return {"mysql56": program.parent.parent, "mariadb": program.parent.parent}.get(name, program.parent.parent.parent)


@pytest.fixture
def renamed(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A packaged server, started from the directory that a variable names."""
    name, variable = request.param
    (kind,) = own_servers({f"{PREFIX}{variable}": str(directory_of(name))}).values()
    assert kind.missing() is None
    with contextlib.closing(kind()) as server:
        yield server


@pytest.mark.parametrize(
    "renamed", [("mysql56", "MYSQL56"), ("mariadb105", "MARIADB105"), ("mysql97", "MYSQL97")], indirect=True
)
def test_an_installed_server_starts_from_a_directory_that_a_variable_names_and_replicates(
    renamed: Server, servers: ServerFactory
) -> None:
    source = renamed.start(server_id=1)
    replica = servers(renamed.name).start(server_id=2)
    replica.attach_to(source)
    end = light_workload(source)
    replica.wait_caught_up(*end)
    assert replica.checksum_tables([DATABASE]) == source.checksum_tables([DATABASE])


@pytest.mark.parametrize("name", sorted(OWN))
def test_a_server_of_ones_own_is_relayed_to_a_replica_of_its_own_version(chains: ChainFactory, name: str) -> None:
    chain = chains(name)
    replicas = chain.replicas((name,))
    light_workload(chain.source)
    assert chain.check_archive() > 100
    chain.check_tables(replicas, [DATABASE])


@pytest.mark.parametrize("binlog_format", ["ROW", "MIXED"])
@pytest.mark.parametrize("name", sorted(name for name, kind in OWN.items() if kind.flavour == "mysql"))
def test_a_view_of_a_mysql_of_ones_own_is_followed_by_9_7(
    servers: ServerFactory, tmp_path: Path, name: str, binlog_format: str
) -> None:
    source = servers(name).start(server_id=1, options=[f"--binlog-format={binlog_format}"])
    replica = servers("mysql97").start(server_id=2, options=["--gtid-mode=ON", "--enforce-gtid-consistency=ON"])
    with ViewTrial(source, replica, tmp_path / "relay") as trial:
        light_workload(source, binlog_format)
        trial.check([DATABASE])
