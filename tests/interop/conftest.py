"""What the interop tests are made of: chains of a real source, a relay, and real replicas."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import ServerFactory
from tests.support.chain import Chain

# Makes a chain that is running: chains("mysql56", options=[...], markers="strip", sections={...}).
ChainFactory = Callable[..., Chain]


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
