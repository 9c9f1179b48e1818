"""Transactions that must not run together, on a real replica: with numbers that lack a rule it stops
or has other rows; with the rule it waits, and has the source's rows."""

from collections.abc import Callable, Iterator

import pytest

from deploy.servers import Server
from tests.conftest import ServerFactory
from tests.support.dependency_checker import ClaimedGroup, collisions, fitting_numbers
from tests.support.dependency_traps import APART, TRAPS, Trap
from tests.support.dependency_trial import DependencyTrial, GtidTrial
from tests.support.key_judge import KeyJudge
from tests.support.new_source_traps import NEW_SOURCE_TRAPS

pytestmark = pytest.mark.interop

OPTIONS = [
    "--gtid-mode=ON",
    "--enforce-gtid-consistency=ON",
    "--replica-parallel-workers=4",
    "--innodb-lock-wait-timeout=50",
]


@pytest.fixture(scope="module")
def source(module_servers: ServerFactory) -> Server:
    return module_servers("mysql56").start(server_id=1)


@pytest.fixture(scope="module")
def replicas(module_servers: ServerFactory) -> Callable[[bool], Server]:
    """By replica_preserve_commit_order."""
    made: dict[bool, Server] = {}

    def replica(keeps_order: bool) -> Server:
        if keeps_order not in made:
            order = f"--replica-preserve-commit-order={'ON' if keeps_order else 'OFF'}"
            made[keeps_order] = module_servers("mysql97").start(server_id=2 + keeps_order, options=[*OPTIONS, order])
        return made[keeps_order]

    return replica


@pytest.fixture(scope="module")
def trial(
    source: Server, module_servers: ServerFactory, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DependencyTrial]:
    judge = KeyJudge(module_servers("mysql97").start(server_id=9))
    with judge, DependencyTrial(source, judge, tmp_path_factory.mktemp("trial")) as trial:
        yield trial


@pytest.fixture(scope="module")
def new_trial(module_servers: ServerFactory, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GtidTrial]:
    source = module_servers("mysql97").start(server_id=8, options=OPTIONS[:2])
    judge = KeyJudge(module_servers("mysql97").start(server_id=9))
    with judge, GtidTrial(source, judge, tmp_path_factory.mktemp("new_trial")) as trial:
        yield trial


def with_numbers(claimed: list[ClaimedGroup], numbers: list[tuple[int, int]]) -> Iterator[ClaimedGroup]:
    for one, (last_committed, sequence_number) in zip(claimed, numbers, strict=True):
        one.group.last_committed, one.group.sequence_number = last_committed, sequence_number
        yield one


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.name)
def test_without_the_rule_the_replica_has_other_rows_or_stops_and_with_it_it_waits(
    trap: Trap, trial: DependencyTrial, replicas: Callable[[bool], Server]
) -> None:
    replica = replicas(trap.keeps_order)
    trial.write(trap)
    without = fitting_numbers(iter(trial.claims([trap.rule])))
    assert without == [(0, 1), (1, 2), (1, 3)]
    outcome = trial.apply(replica, without)
    assert (outcome.error, outcome.ran_together) == (trap.error, True)
    assert outcome.error or outcome.differences
    assert list(collisions(with_numbers(trial.claims(), without)))

    numbers = fitting_numbers(iter(trial.claims()))
    assert numbers == [(0, 1), (1, 2), (2, 3)]
    outcome = trial.apply(replica, numbers)
    assert (outcome.error, outcome.ran_together, outcome.differences) == (0, False, ())
    assert not list(collisions(with_numbers(trial.claims(), numbers)))


@pytest.mark.parametrize("trap", NEW_SOURCE_TRAPS, ids=lambda trap: trap.name)
def test_so_it_is_with_what_only_a_new_source_has(
    trap: Trap, new_trial: GtidTrial, replicas: Callable[[bool], Server]
) -> None:
    replica = replicas(trap.keeps_order)
    for left_out, numbers, told in (
        ([trap.rule], [(0, 1), (1, 2), (1, 3)], (trap.error, True)),
        ([], [(0, 1), (1, 2), (2, 3)], (0, False)),
    ):
        new_trial.write(trap)
        assert fitting_numbers(iter(new_trial.claims(left_out))) == numbers
        outcome = new_trial.apply(replica, numbers)
        assert (outcome.error, outcome.ran_together) == told
        assert outcome.error or not outcome.differences
        assert bool(list(collisions(with_numbers(new_trial.claims(), numbers)))) == bool(left_out)


@pytest.mark.parametrize("keeps_order", [True, False])
@pytest.mark.parametrize(
    ("numbers", "together"),
    [
        ([(0, 1), (1, 2), (1, 3)], True),
        ([(0, 1), (1, 2), (2, 3)], False),
        ([(0, 1), (1, 2), (0, 3)], False),  # "no parent" means all before
        ([(0, 1), (1, 2), (1, 4)], False),  # as does a number that is left out
        ([(0, 2), (2, 4), (2, 6)], False),
        ([(0, 7), (7, 8), (7, 9)], True),  # where they begin is no matter
        ([(0, 1), (1, 2), (3, 3)], False),  # no parent can come after its child
        ([(0, 1), (1, 2), (1, 2)], False),
    ],
)
def test_what_numbers_mean_to_a_replica(
    numbers: list[tuple[int, int]],
    together: bool,
    keeps_order: bool,
    trial: DependencyTrial,
    replicas: Callable[[bool], Server],
) -> None:
    trial.write(APART)
    assert fitting_numbers(iter(trial.claims())) == [(0, 1), (1, 2), (1, 3)]
    outcome = trial.apply(replicas(keeps_order), numbers)
    assert (outcome.error, outcome.ran_together, outcome.differences) == (0, together, ())
