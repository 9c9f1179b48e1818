"""An archive of five small files, and a console before it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from relay.admin.console import Console
from relay.archive.archive import Generations
from relay.archive.generation import Archive
from tests.support.archive_filling import fill
from tests.support.console_fakes import FakeConnections, FakeSource
from tests.unit.archive.test_purge import binlogs


@pytest.fixture
async def archive(tmp_path: Path) -> AsyncIterator[Archive]:
    await fill(tmp_path, *binlogs())
    opened = await Archive.open(tmp_path)
    yield opened
    await opened.close()


@pytest.fixture
def connections() -> FakeConnections:
    return FakeConnections()


@pytest.fixture
def source() -> FakeSource:
    return FakeSource()


@pytest.fixture
async def console(archive: Archive, source: FakeSource, connections: FakeConnections) -> AsyncIterator[Console]:
    made = Console(Generations.of(archive), source, connections, config_path=Path("/etc/relay.toml"))
    yield made
    made.close()
