"""`binlog-relay status` of relays that run, and of one that does not."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.interop.conftest import ChainFactory
from tests.support.certificates import Authority
from tests.support.chain import Chain, wait_until
from tests.support.free_port import free_port
from tests.support.http_relay import http_section
from tests.support.relay_process import REPLICA_PASSWORD
from tests.support.terminal import CTRL_C, Terminal

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


def test_watching_goes_on_until_ctrl_c_with_the_code_of_the_last_look(chains: ChainFactory) -> None:
    chain = chains("mysql56")
    chain.wait_published()
    words = ("status", "--watch", "--every", "0.5", "--config", chain.relay.config)
    with Terminal(*words) as terminal:
        terminal.wait_for("no problems", times=2)
        assert terminal.shown.count("\x1b[2J") >= 2
        terminal.type(CTRL_C)
        assert terminal.wait_ended() == 0
    assert "Traceback" not in terminal.shown
    with Terminal(*words) as terminal:
        terminal.wait_for("no problems")
        chain.relay.stop()
        terminal.wait_for("PROBLEM   the relay does not run", times=2)
        terminal.type(CTRL_C)
        assert terminal.wait_ended() == 1
    assert "Traceback" not in terminal.shown


@pytest.mark.parametrize("tls", ["http", "https"])
def test_lag_is_told_in_seconds_where_the_http_port_is_on(chains: ChainFactory, tmp_path: Path, tls: str) -> None:
    shown = Authority.make(tmp_path / "ca").server("relay")
    files = {"tls_cert": str(shown.certificate), "tls_key": str(shown.key)} if tls == "https" else {}
    chain = chains("mysql56", sections=http_section(free_port(), **files))
    chain.source.execute_many(["CREATE DATABASE work", "CREATE TABLE work.t (a INT PRIMARY KEY)"])
    chain.wait_published()
    with contextlib.closing(chain.raw_client()) as client:
        client.set_up(server_id=99)
        client.ask_dump(chain.first_position().file, 4, server_id=99)
        wait_until(
            lambda: [one["behind_s"] for one in looked(chain)[1]["replicas"]] == [0.0],
            "the replica at the end is shown",
        )
        # While events come, and a little longer, it is the age of the newest.
        wait_until(lambda: looked(chain)[1]["source"]["seconds_behind"] == 0, "the source has nothing more")
        found = looked(chain)[1]
        assert found["relay"]["not_asked_by_http"] is None
        assert found["replicas"][0]["place"].startswith("mysql-bin.")
        assert "0 bytes behind (0 s)" in chain.relay.command("status").stdout


def test_an_http_port_that_is_not_the_relays_is_said_and_the_rest_is_shown(chains: ChainFactory) -> None:
    chain = chains("mysql56")
    chain.wait_published()
    port = free_port()
    with chain.relay.config.open("a", encoding="utf-8") as config:
        config.write(f"[http]\nenabled = true\nport = {port}\n")
    code, found = looked(chain)
    assert code == 0 and f"does not listen at port {port}" in found["relay"]["not_asked_by_http"]
    assert found["source"]["attached"] is True
