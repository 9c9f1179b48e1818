"""A replica that has what a view of a real MariaDB never made: it was at another server, or the source lost it."""

from pathlib import Path

import pytest

from relay.view.rules.mariadb.assigned_gtids import domain_uuid
from tests.conftest import ServerFactory
from tests.support.chain import wait_until
from tests.support.mariadb_view import SOURCES, mariadb_chain
from tests.support.view_chain import REPLICA_DEFAULTS, UUID_OF_VIEW

pytestmark = pytest.mark.interop


@pytest.mark.parametrize(("domain", "extra"), [(0, 0), (7, 0), (0, 1)])
@pytest.mark.parametrize("name", SOURCES)
def test_it_is_told_so_until_the_view_has_it(
    name: str, domain: int, extra: int, servers: ServerFactory, tmp_path: Path
) -> None:
    sections = {"listen": {"position_wait_s": 1}}
    with mariadb_chain(servers, name, tmp_path, sections=sections) as chain:
        source = chain.source
        source.execute_many([
            "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)", "CREATE OR REPLACE TABLE d.t (id INT PRIMARY KEY)",
            "SET SESSION gtid_domain_id = 7", "INSERT INTO d.t VALUES (1)",
        ])  # fmt: skip
        chain.wait_viewed()
        replica = chain.server("mysql97", REPLICA_DEFAULTS)
        ahead = f"{domain_uuid(UUID_OF_VIEW, domain, extra)}:20"
        replica.sql(f"SET GLOBAL gtid_purged = '{ahead}'")
        chain.follow_view(replica)

        wait_until(lambda: chain.relay.logged("dump_refused"), "the replica is refused", 30)
        refused = chain.relay.logged("dump_refused")[0]
        assert refused["number"] == 1105 and "has more GTIDs" in refused["reason"] and ahead in refused["reason"]
        assert not replica.sql("SHOW DATABASES LIKE 'd'")
        if extra:
            return
        source.execute_many(
            [f"SET SESSION gtid_domain_id = {domain}", "SET SESSION gtid_seq_no = 20", "CREATE DATABASE x"]
        )
        chain.wait_viewed()
        wait_until(
            lambda: bool(replica.sql("SELECT 1 FROM information_schema.tables WHERE table_schema = 'd'")),
            "it goes on",
            60,
        )
        assert not replica.sql("SHOW DATABASES LIKE 'x'")
