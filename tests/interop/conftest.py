"""What the interop tests are made of: chains of a real source, a relay, and real replicas."""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deploy.servers import Server
from tests.conftest import ServerFactory
from tests.support.chain import Chain
from tests.support.view_trial import REPLICA_OPTIONS, ViewTrial

# Makes a chain that is running: chains("mysql56", options=[...], markers="strip", sections={...}).
ChainFactory = Callable[..., Chain]
# Makes a trial, with another replica than the usual one if it is given: trial(), trial(native).
TrialFactory = Callable[..., ViewTrial]


@contextlib.contextmanager
def _chains(servers: ServerFactory, directory: Path) -> Iterator[ChainFactory]:
    with contextlib.ExitStack() as made:

        def make(source_name: str, **settings: object) -> Chain:
            count = len(list(directory.iterdir()))
            return made.enter_context(Chain(servers, source_name, directory / f"relay{count}", **settings))  # type: ignore[arg-type]

        yield make


@pytest.fixture
def chains(servers: ServerFactory, tmp_path: Path) -> Iterator[ChainFactory]:
    """Makes chains; all of their processes are ended with the test."""
    with _chains(servers, tmp_path) as make:
        yield make


@pytest.fixture(scope="module")
def module_chains(module_servers: ServerFactory, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChainFactory]:
    """Like `chains`, for chains that all tests of a module share."""
    with _chains(module_servers, tmp_path_factory.mktemp("chains")) as make:
        yield make


@pytest.fixture(scope="module")
def trial_servers(module_servers: ServerFactory) -> tuple[Server, Server]:
    """The source and the replica of all trials of a module: a MySQL 5.6, and a MySQL 9.7 with its defaults."""
    source = module_servers("mysql56").start(server_id=1)
    return source, module_servers("mysql97").start(server_id=2, options=list(REPLICA_OPTIONS))


@pytest.fixture
def trial(trial_servers: tuple[Server, Server], tmp_path: Path) -> TrialFactory:
    """Makes trials, one after the other on the same two servers."""
    source, replica = trial_servers
    count = itertools.count()
    return lambda behind=replica: ViewTrial(source, behind, tmp_path / str(next(count)))
