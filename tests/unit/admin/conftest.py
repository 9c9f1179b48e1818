"""An archive of five small files, and a console before it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from relay.admin.console import Console
from relay.archive.archive import Archive
from relay.archive.generation import Generation
from tests.support.archive_filling import fill
from tests.support.console_fakes import FakeConnections, FakeSource
from tests.unit.archive.test_purge import binlogs


@pytest.fixture
async def generation(tmp_path: Path) -> AsyncIterator[Generation]:
    await fill(tmp_path, *binlogs())
    opened = await Generation.open(tmp_path)
    yield opened
    await opened.close()


@pytest.fixture
def connections() -> FakeConnections:
    return FakeConnections()


@pytest.fixture
def source() -> FakeSource:
    return FakeSource()


@pytest.fixture
async def console(generation: Generation, source: FakeSource, connections: FakeConnections) -> AsyncIterator[Console]:
    made = Console(Archive.of(generation), source, connections, config_path=Path("/etc/relay.toml"))
    yield made
    made.close()
