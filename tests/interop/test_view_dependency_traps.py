"""Transactions that must not run together, through a view: real replicas let the second one wait while the first one is held up."""

import contextlib
from collections.abc import Iterator

import pytest

from tests.conftest import ServerFactory
from tests.support.dependency_checker import check_dependencies
from tests.support.dependency_traps import APART, TRAPS, Trap
from tests.support.dependency_trial import held_gate, setup_of, wait_settled, work_of
from tests.support.key_judge import KeyJudge
from tests.support.new_source_traps import NEW_SOURCE_TRAPS
from tests.support.table_values import check_equal
from tests.support.view_chain import REPLICA_DEFAULTS, ViewChain, view_keys, wait_executed
from tests.support.view_files import binlogs_in

pytestmark = pytest.mark.interop


def last_of(gtids: str) -> str:
    """The GTID that is the last one of a set of one server."""
    uuid, _, numbers = gtids.partition(":")
    return f"{uuid}:{numbers.rpartition('-')[2]}"


class ViewTrial:
    """A source, a view of it, and replicas with four workers that keep the order of commits, and do not."""

    def __init__(self, chain: ViewChain) -> None:
        self.chain = chain
        orders = ("ON", "OFF")
        options = [[*REPLICA_DEFAULTS, f"--replica-preserve-commit-order={order}"] for order in orders]
        self.replicas = [chain.view_replica(options=one) for one in options]

    def run(self, trap: Trap) -> list[bool]:
        """Whether the second transaction ran beside the first one, by replica."""
        chain = self.chain
        chain.source.execute_many(["SET binlog_format = ROW", *setup_of(trap)])
        self._wait()
        with contextlib.ExitStack() as gates:
            open_gates = [gates.enter_context(held_gate(replica)) for replica in self.replicas]
            chain.source.execute_many(["SET binlog_format = ROW", *work_of(trap)])
            chain.wait_viewed()
            second = last_of(chain.gtids_of_view())
            together = [wait_settled(replica, second) for replica in self.replicas]
            for open_gate in open_gates:
                open_gate()
        self._wait()
        for replica in self.replicas:
            check_equal(chain.source, replica, ["gate", trap.database])
        return together

    def _wait(self) -> None:
        self.chain.wait_viewed()
        for replica in self.replicas:
            wait_executed(replica, self.chain.gtids_of_view(), self.chain.relay)


@pytest.fixture(scope="module", params=["FULL", "MINIMAL"])
def trial(
    request: pytest.FixtureRequest, module_servers: ServerFactory, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ViewTrial]:
    views = [view_keys(dependencies="writeset")]
    options = [f"--binlog-row-image={request.param}"]
    with ViewChain(module_servers, "mysql56", tmp_path_factory.mktemp("trial"), options=options, views=views) as chain:
        yield ViewTrial(chain)


@pytest.fixture(scope="module", params=["FULL", "MINIMAL"])
def new_trial(
    request: pytest.FixtureRequest, module_servers: ServerFactory, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ViewTrial]:
    views = [view_keys(gtids="keep", dependencies="writeset")]
    # Of its own dependencies it forgets all but the newest: that two transactions run together is what the view says.
    options = [
        *REPLICA_DEFAULTS[:2],
        "--binlog-transaction-dependency-history-size=1",
        f"--binlog-row-image={request.param}",
    ]
    with ViewChain(module_servers, "mysql97", tmp_path_factory.mktemp("trial"), options=options, views=views) as chain:
        yield ViewTrial(chain)


def test_transactions_that_have_nothing_in_common_run_together(trial: ViewTrial) -> None:
    assert trial.run(APART) == [True, True]


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.name)
def test_transactions_that_must_not_do_not_run_together(trap: Trap, trial: ViewTrial) -> None:
    assert trial.run(trap) == [False, False]


def test_so_it_is_behind_a_new_source_that_forgets_its_own_dependencies(new_trial: ViewTrial) -> None:
    assert new_trial.run(APART) == [True, True]


@pytest.mark.parametrize("trap", NEW_SOURCE_TRAPS, ids=lambda trap: trap.name)
def test_transactions_that_must_not_do_not_run_together_behind_a_new_source(trap: Trap, new_trial: ViewTrial) -> None:
    assert new_trial.run(trap) == [False, False]


def test_and_nothing_collides_in_the_files_of_the_view(trial: ViewTrial, module_servers: ServerFactory) -> None:
    with KeyJudge(module_servers("mysql97").start(server_id=99)) as judge:
        assert check_dependencies(judge, binlogs_in(trial.chain.view_directory())) > 0
