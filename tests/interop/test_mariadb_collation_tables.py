"""The collations that the product knows of MariaDB and of MySQL are those that the servers have."""

import pytest

from deploy.servers import Server
from relay.view.rules.mariadb.status.mariadb_collations import MariadbCollations
from relay.view.rules.mariadb.status.source_collations import SOURCE_COLLATIONS
from relay.view.rules.mariadb.status.target_names import TARGET_NAMES
from relay.view.rules.targets.known.target import TARGETS_BY_NAME
from relay.view.stops.stop_reason import Untranslatable
from tests.conftest import ServerFactory

pytestmark = pytest.mark.interop

_COLLATIONS = (
    "SELECT ID, FULL_COLLATION_NAME, CHARACTER_SET_NAME FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY"
)


def collations_of(server: Server) -> dict[int, tuple[str, str]]:
    return {int(number): (name, charset) for number, name, charset in server.sql(_COLLATIONS)}


def known() -> dict[int, tuple[str, str]]:
    return {number: (one.name, one.charset) for number, one in SOURCE_COLLATIONS.items()}


@pytest.mark.parametrize("name", ["mariadb", "mariadb118"])
def test_every_collation_of_a_mariadb_is_known(servers: ServerFactory, name: str) -> None:
    source = servers(name).start(server_id=1)
    found = collations_of(source)
    assert found.items() <= known().items()
    if name == "mariadb118":
        assert found == known()


def test_every_collation_of_a_mysql_is_known(servers: ServerFactory) -> None:
    replica = servers("mysql97").start(server_id=1)
    found = {
        int(number): name
        for number, name in replica.sql("SELECT ID, COLLATION_NAME FROM information_schema.COLLATIONS")
    }
    assert found == TARGET_NAMES
    collations = MariadbCollations({}, TARGETS_BY_NAME["mysql-9.7"])
    for number in SOURCE_COLLATIONS:
        try:
            assert collations.number_of(number) in found
        except Untranslatable:
            continue
