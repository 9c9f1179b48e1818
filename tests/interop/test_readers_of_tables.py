"""Readers of binlogs that ask the source for the names of columns while they read: through the relay they get the same rows."""

import asyncio
import contextlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from deploy.servers import BinlogPosition
from tests.interop.conftest import ChainFactory
from tests.support.chain import Chain, wait_until
from tests.support.client_tools import need_tool, node_directory
from tests.support.described_answer import Asker

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]

SOURCES = ("mysql56", "mysql97", "mariadb")
USER, PASSWORD = "reader", "reader-password"
SCRIPT = Path(__file__).parents[1] / "support" / "read_rows.js"
ROWS = [(number, f"name {number}", "new") for number in range(1, 4)]


class Place:
    """A source with rows in its binlog, a relay that has them and has recorded the table, and where the rows begin."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        source = chain.source
        source.execute_many(
            [
                f"GRANT REFERENCES ON *.* TO '{source.replication_user}'@'%'",
                "CREATE DATABASE shop",
                "CREATE TABLE shop.orders (id INT NOT NULL PRIMARY KEY, label VARCHAR(30) CHARACTER SET utf8mb4, "
                "state ENUM('old','new') NOT NULL)",
            ]
        )
        self.begin: BinlogPosition = source.master_status()
        source.execute_many([f"INSERT INTO shop.orders VALUES {row}" for row in ROWS])
        end = source.master_status()
        chain.relay.wait_archived(end.file, end.position)
        wait_until(self._is_recorded, "the relay has recorded the table")

    def _is_recorded(self) -> bool:
        asked = "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = 'shop' AND table_name = 'orders'"
        with contextlib.closing(Asker(self.chain.relay.port, USER, PASSWORD)) as asker:
            return asker.ask(asked).rows == (("3",),)


@pytest.fixture(scope="module", params=SOURCES)
def place(request: pytest.FixtureRequest, module_chains: ChainFactory) -> Place:
    source_name: str = request.param
    # The readers know no newer way to log in, and no newer checksums than the old ones.
    account = {"user": USER, "password": PASSWORD, "plugin": "mysql_native_password"}
    sections = {"source": {"record_schema": True}, "[account]": account}
    return Place(module_chains(source_name, options=["--binlog-format=ROW"], sections=sections))


@pytest.mark.parametrize("module", ["zongji", "@vlasky/zongji"])
def test_zongji_gives_the_rows_with_the_names_of_their_columns(place: Place, module: str) -> None:
    need_tool("zongji")
    if module == "zongji" and place.chain.source.flavour == "mariadb":
        pytest.skip("it does not say that it can read MariaDB's events")
    login = {"host": "127.0.0.1", "port": place.chain.relay.port, "user": USER, "password": PASSWORD}
    options = login | {"filename": place.begin.file, "position": place.begin.position, "count": len(ROWS)}
    done = subprocess.run(
        ["node", str(SCRIPT), module, json.dumps(options)],
        env={"NODE_PATH": str(node_directory() / "node_modules"), "PATH": "/usr/local/bin:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    read = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["row"] for one in read] == [
        {"id": number, "label": label, "state": state} for number, label, state in ROWS
    ]
    assert {(one["schema"], one["table"]) for one in read} == {("shop", "orders")}


def test_asyncmy_gives_the_rows_with_the_names_of_their_columns(place: Place) -> None:
    pytest.importorskip("asyncmy")
    if place.chain.source.flavour == "mariadb":
        pytest.skip("it does not say that it can read MariaDB's events")
    from asyncmy import connect
    from asyncmy.replication import BinLogStream
    from asyncmy.replication.row_events import WriteRowsEvent

    async def read() -> list[dict[str, Any]]:
        login = {"host": "127.0.0.1", "port": place.chain.relay.port, "user": USER, "password": PASSWORD}
        streaming, asking = await connect(**login), await connect(**login)
        stream = BinLogStream(
            streaming,
            asking,
            978,
            master_log_file=place.begin.file,
            master_log_position=place.begin.position,
            resume_stream=True,
            blocking=True,
            only_events=[WriteRowsEvent],
        )
        rows: list[dict[str, Any]] = []
        async for event in stream:
            rows += [row["values"] for row in event.rows]
            if len(rows) == len(ROWS):
                break
        streaming.close()
        asking.close()
        return rows

    rows = asyncio.run(asyncio.wait_for(read(), 30))
    assert rows == [{"id": number, "label": label, "state": state} for number, label, state in ROWS]
