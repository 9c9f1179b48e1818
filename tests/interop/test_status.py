"""`binlog-relay status` of relays that run, and of one that does not."""

import contextlib
import json
from typing import Any

import pytest

from tests.interop.conftest import ChainFactory
from tests.support.chain import Chain, wait_until
from tests.support.relay_process import REPLICA_PASSWORD

pytestmark = pytest.mark.interop


def looked(chain: Chain) -> tuple[int, dict[str, Any]]:
    """Exit code and the facts."""
    ended = chain.relay.command("status", "--json")
    assert ended.stderr == "" and REPLICA_PASSWORD not in ended.stdout
    return ended.returncode, json.loads(ended.stdout)


@pytest.mark.parametrize("name", ["mysql56", "mysql97", "mariadb"])
def test_a_running_relay_shows_source_archive_and_replicas(chains: ChainFactory, name: str) -> None:
    chain = chains(name)
    chain.source.execute_many(["CREATE DATABASE work", "CREATE TABLE work.t (a INT PRIMARY KEY)"])
    end = chain.wait_published()
    with contextlib.closing(chain.raw_client()) as client:
        client.ask_dump(chain.first_position().file, 4)
        wait_until(lambda: looked(chain)[1]["replicas"], "the replica is shown")
        code, found = looked(chain)
        text = chain.relay.command("status").stdout
    assert (code, found["problems"]) == (0, [])
    assert found["relay"]["running"] and found["relay"]["asked_as"] == "replica"
    assert found["source"]["attached"] is True and found["source"]["address"] == f"127.0.0.1:{chain.source.port}"
    assert (found["archive"]["newest"], found["archive"]["end"]) == (end.file, end.position)
    assert found["archive"]["free_bytes"] > 0
    assert found["replicas"][0]["user"] == "replica"
    assert "no problems" in text and f"{end.file}:{end.position}" in text and "1 are being sent" in text


def test_a_relay_that_does_not_run_says_so_and_shows_its_files(chains: ChainFactory) -> None:
    chain = chains("mysql56")
    end = chain.wait_published()
    chain.relay.stop()
    code, found = looked(chain)
    assert code == 1 and found["problems"] == ["the relay does not run"]
    assert found["archive"]["newest"] == end.file
    assert "does not run" in chain.relay.command("status").stdout


def test_a_source_that_died_is_a_problem(chains: ChainFactory) -> None:
    chain = chains("mysql56")
    chain.wait_published()
    chain.source.stop()
    wait_until(lambda: looked(chain)[0] == 1, "status says that the source is gone")
    code, found = looked(chain)
    assert code == 1 and found["source"]["attached"] is False
    assert "does not follow its source" in found["problems"][0]
