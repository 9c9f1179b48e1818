"""What goes wrong with views by hand: places that are none, other settings for a view that is there, a start that never comes."""

from collections.abc import Iterator
from pathlib import Path

import pymysql
import pytest

from deploy.servers import BinlogPosition
from tests.conftest import ServerFactory
from tests.support.chain import wait_until
from tests.support.relay_process import REPLICA_PASSWORD, wait_for_line
from tests.support.view_chain import UUID_OF_VIEW, VIEW, ViewChain, view_keys

pytestmark = pytest.mark.interop
LATER = "later"


class Mistakes:
    """A view of two files, and where the first one ends."""

    def __init__(self, chain: ViewChain) -> None:
        self.chain = chain
        chain.source.execute_many(["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY) ENGINE=InnoDB"])
        self.end: BinlogPosition = chain.source.master_status()
        chain.source.sql("FLUSH LOGS")
        chain.source.sql("INSERT INTO d.t VALUES (1)")
        chain.wait_viewed()

    def change(self, old: str, new: str) -> None:
        """In relay.toml."""
        config = self.chain.relay.config
        assert old in config.read_text()
        config.write_text(config.read_text().replace(old, new))

    def said(self, *words: str) -> tuple[int, str]:
        """The exit code of a command, and what it says."""
        done = self.chain.relay.command("view", *words)
        return done.returncode, (done.stdout + done.stderr).strip()


@pytest.fixture
def mistakes(servers: ServerFactory, tmp_path: Path) -> Iterator[Mistakes]:
    with ViewChain(servers, "mysql56", tmp_path / "relay") as chain:
        yield Mistakes(chain)


def test_places_that_are_none_are_refused_with_what_there_is(mistakes: Mistakes) -> None:
    file, end = mistakes.end
    cases = {
        f"{file}:0": f"{file}:0 is no place: positions in a binlog begin at 4.",
        f"{file}:{end - 1}": f"{file}:{end - 1} is inside a transaction: no set of GTIDs is executed there. Nearest good places: ",
        f"{file}:99999999": f"{file}:99999999 is behind the last place that the view has of this file, {file}:",
        "mysql-bin.009999:4": f"mysql-bin.009999 is not in the view, which has {file} to mysql-bin.000002.",
    }
    for at, expected in cases.items():
        for words in (("seed", VIEW, "--at", at), ("find", VIEW, "--source", at)):
            code, text = mistakes.said(*words)
            assert (code, text[: len(expected)]) == (1, expected)
            assert text.endswith(".") and "gtid_purged" not in text
    code, text = mistakes.said("find", VIEW, "--gtid", f"{UUID_OF_VIEW}:999")
    numbers = f"Its files have of the GTIDs that it assigns: {UUID_OF_VIEW}:1 to 3."
    assert (code, text) == (1, f"{UUID_OF_VIEW}:999 is not in the view. {numbers}")


def test_with_other_settings_than_those_of_its_files_nothing_is_said_of_a_view_as_if_they_were_its_own(
    mistakes: Mistakes,
) -> None:
    chain, (file, end) = mistakes.chain, mistakes.end
    mistakes.change(str(UUID_OF_VIEW), "5a3c1b9e-7d20-5c44-8f61-0d2e4b6a8c11")
    what = (
        f"view gtid was made with other settings: uuid was '{UUID_OF_VIEW}', is '5a3c1b9e-7d20-5c44-8f61-0d2e4b6a8c11'."
    )
    for words in (
        ("seed", VIEW, "--at", f"{file}:{end}"),
        ("find", VIEW, "--source", f"{file}:{end}"),
        ("check", VIEW),
        ("verify", VIEW),
        ("skip", VIEW, "--at", f"{file}:{end}"),
    ):
        code, text = mistakes.said(*words)
        assert (code, text[: len(what)]) == (2, what)
        assert 'stop the relay and run "binlog-relay view rebuild gtid"' in text
    code, text = mistakes.said("list")
    assert code == 0 and "other settings" in text and f"gtid is not served: {what}" in text
    chain.relay.stop()
    chain.relay.start()
    assert wait_for_line(chain.relay, "view_not_served")["what"] == what
    ((*_, stopped),) = chain.relay.sql("CALL binlog_relay.view_list()")
    assert what in stopped and stopped.endswith("Then restart the relay."), stopped
    chain.relay.stop()
    assert mistakes.said("rebuild", VIEW)[0] == 0
    chain.relay.start()
    wait_until(lambda: "runs with the relay" in mistakes.said("list")[1], "the view is made with the new settings")


def test_a_view_that_waits_for_a_file_says_so_and_begins_with_it(servers: ServerFactory, tmp_path: Path) -> None:
    start = {"file": "mysql-bin.000003", "position": 4, "next": 1001}
    with ViewChain(servers, "mysql56", tmp_path / "relay", views=[view_keys(), view_keys(LATER, start=start)]) as chain:
        mistakes = Mistakes(chain)
        wait_until(lambda: chain.relay.sql("CALL binlog_relay.view_list()")[1][-1], "the view says what it waits for")
        stopped = chain.relay.sql("CALL binlog_relay.view_list()")[1][-1]
        assert "mysql-bin.000003, with which the view begins, is not in the archive yet" in stopped, stopped
        assert "correct start of [[view]] " in stopped
        chain.source.sql("FLUSH LOGS")
        chain.source.sql("INSERT INTO d.t VALUES (2)")
        chain.wait_archived()
        wait_until(lambda: chain.gtids_of_view(LATER) == f"{UUID_OF_VIEW}:1-1001", "the view has begun")
        assert mistakes.said("find", LATER, "--gtid", f"{UUID_OF_VIEW}:1001")[0] == 0
        with pytest.raises(pymysql.MySQLError, match="is not in the view"):
            chain.relay.add_account(user="root", password=REPLICA_PASSWORD, admin=True)
            chain.relay.reload()
            chain.relay.sql(f"CALL binlog_relay.view_find('{LATER}', 'source', 'mysql-bin.000001', 4)", "root")
