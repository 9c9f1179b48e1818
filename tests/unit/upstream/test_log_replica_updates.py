"""Sources that are replicas themselves and do not write what they apply to their own binlogs."""

from pathlib import Path

import pytest
import structlog.testing
from pydantic import SecretStr

from relay.config import ServerSource
from relay.upstream.source.connection import SourceConnection
from relay.upstream.source.log_replica_updates import switched_off, warn_of_a_replica
from relay.upstream.source.open_source import open_source
from tests.support.fake_source import PASSWORD, USER, FakeSource
from tests.support.generation_filling import A, B, mysql_series
from tests.support.relay_inside import ledger, relay_inside

MYSQL = ["Waiting", "db0", "repl", "3306", "60", "b.000001", "4", "r.000002", "4", "b.000001", "Yes", "Yes", ""]
MARIADB = "SHOW GLOBAL STATUS LIKE 'Slaves_running'"


class Source:
    """Answers from a table."""

    def __init__(self, **variables: str) -> None:
        self.variables = variables

    async def variable(self, name: str) -> str | None:
        return self.variables.get(name)


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({"log_replica_updates": "1", "log_slave_updates": "1"}, None),
        ({"log_replica_updates": "0", "log_slave_updates": "0"}, "log_replica_updates"),
        ({"log_slave_updates": "OFF"}, "log_slave_updates"),
        ({"log_slave_updates": "1"}, None),
        ({}, None),
    ],
)
async def test_what_is_switched_off_has_the_name_that_the_source_gives_it(
    variables: dict[str, str], name: str | None
) -> None:
    assert await switched_off(Source(**variables)) == name


@pytest.mark.parametrize(
    ("flavour", "statement", "row", "is_said"),
    [
        ("mysql", "SHOW REPLICA STATUS", MYSQL, True),
        ("mysql", "SHOW SLAVE STATUS", MYSQL, True),
        ("mysql", "SHOW REPLICA STATUS", [*MYSQL[:11], "No", ""], False),
        ("mysql", "SHOW NOTHING", [""], False),
        ("mariadb", MARIADB, ["Slaves_running", "2"], True),
        ("mariadb", MARIADB, ["Slaves_running", "0"], False),
    ],
)
async def test_only_a_source_that_applies_what_another_one_sends_is_warned_of(
    flavour: str, statement: str, row: list[str], is_said: bool
) -> None:
    version = "10.11.6-MariaDB-log" if flavour == "mariadb" else "9.7.4"
    with FakeSource({}, flavour, version, answers={statement: [row]}) as source:
        settings = ServerSource(
            host="127.0.0.1", port=source.port, user=USER, password=SecretStr(PASSWORD), server_id=4242
        )

        async def connect() -> SourceConnection:
            return await open_source(settings)

        with structlog.testing.capture_logs() as logs:
            await warn_of_a_replica(connect, "db1:3306", "log_slave_updates")
    assert [line["event"] for line in logs] == ["source_leaves_out_what_it_applies"] * is_said
    assert not is_said or "set log_slave_updates=ON" in logs[0]["advice"]


async def test_what_the_source_never_wrote_is_in_the_ledger_once_and_the_relay_goes_on(tmp_path: Path) -> None:
    """It counts as purged at the source, and was not when the archive began."""
    files = mysql_series(3, f"{B}:3-4", start=f"{B}:1-2")
    variables = {"gtid_mode": "ON", "gtid_owned": "", "gtid_executed": f"{B}:1-4", "gtid_purged": f"{B}:1-2"}
    variables["log_replica_updates"] = "0"
    held = {name: bytes(data) for name, data in files}
    applying = {"SHOW REPLICA STATUS": [MYSQL]}
    with FakeSource(held, version="9.7.4", server_uuid=B, variables=variables, answers=applying) as source:
        for purged, rows in ((f"{B}:1-2", 0), (f"{A}:1-9,{B}:1-2", 1), (f"{A}:1-9,{B}:1-2", 1)):
            variables |= {"gtid_purged": purged, "gtid_executed": f"{purged},{B}:1-4"}
            async with relay_inside(tmp_path, source) as relay:
                await relay.until_logged("source_attached")
                line = await relay.until_logged("source_leaves_out_what_it_applies")
                assert "log_replica_updates is OFF" in line["what"]
                ((name, data),) = held.items()
                await relay.until_held(name, len(data))
            told = [row for row in ledger(relay.archive) if row.kind == "source_never_logged"]
            assert len(told) == rows
        assert told[0].text.endswith(f"in no binlog of it (log_replica_updates is OFF there): {A}:1-9")
