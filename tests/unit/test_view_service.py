"""When views are opened, what is served of them, and what their accounts are told that have to wait."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from protocol.position import Position
from relay.archive.archive import Archive
from relay.archive.storage.archive_errors import ArchiveCorrupt
from relay.archive.storage.archived_file import SourceIdentity
from relay.archive.write.options import ArchiveOptions
from relay.config import ViewSection
from relay.downstream.clients import Clients
from relay.downstream.listen_options import ListenOptions
from relay.downstream.served_archive import ServedArchive
from relay.view.rules.settings import ViewSettings, derived_uuid
from relay.view_service import MakeViews, OpenView, ViewService
from tests.support.generation_filling import A, append_files, mysql_series

SERVER_UUID = "11111111-2222-3333-4444-555555555555"
IDENTITY = SourceIdentity("mysql", "5.6.24-log", 1, SERVER_UUID)


@dataclass
class Progress:
    source: Position | None = None
    behind_bytes: int = 0
    stop: None = None
    source_generation: int | None = None


@dataclass
class EmptyView:
    archive: Archive
    settings: ViewSettings
    status: Progress

    def skip(self, file: str, offset: int, by: str) -> None:
        raise AssertionError("it never stops")


class EmptyViews:
    """Views without a file; those whose name begins with "bad" cannot be opened."""

    def __init__(self, mirror: Archive, settings: Sequence[ViewSettings], options: ArchiveOptions) -> None:
        self.directory = mirror.directory / "views"
        self.settings = settings
        self.options = options
        self.made: dict[str, EmptyView] = {}
        self.refused: dict[str, Exception] = {}
        self.follows = self.closed = False

    @property
    def all(self) -> Mapping[str, EmptyView]:
        return self.made

    async def open(self) -> None:
        for settings in self.settings:
            if settings.name.startswith("bad"):
                self.refused[settings.name] = ArchiveCorrupt("it is damaged", advice="Make it anew.")
            else:
                archive = await Archive.open(self.directory / settings.name, self.options)
                self.made[settings.name] = EmptyView(archive, settings, Progress())

    def begin(self) -> None:
        self.follows = True

    async def close(self) -> None:
        self.closed = True
        for view in self.made.values():
            await view.archive.close()


class Relay:
    """What the service is wired with."""

    def __init__(self, mirror: Archive) -> None:
        self.mirror = mirror
        self.made: list[EmptyViews] = []
        self.services: list[ViewService] = []

    def make(self, mirror: Archive, settings: Sequence[ViewSettings], options: ArchiveOptions) -> EmptyViews:
        self.made.append(EmptyViews(mirror, settings, options))
        return self.made[-1]

    def begin(self, *sections: ViewSection, make: MakeViews | None = None) -> ViewService:
        options = ListenOptions()
        clients = Clients(options)

        def serve(view: OpenView) -> ServedArchive:
            return ServedArchive(view.archive, clients, options)

        service = ViewService(self.mirror, sections, ArchiveOptions(), make or self.make, serve)
        service.begin()
        self.services.append(service)
        return service


@pytest.fixture
async def relay(tmp_path: Path) -> AsyncIterator[Relay]:
    mirror = await Archive.open(tmp_path / "archive")
    relay = Relay(mirror)
    yield relay
    for service in relay.services:
        service.served.close()
        await service.close()
    await mirror.close()


def section(name: str = "gtid", **keys: object) -> ViewSection:
    return ViewSection.model_validate({"name": name, **keys})


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


async def test_where_the_source_is_known_views_are_served_before_anybody_is_listened_to(relay: Relay) -> None:
    relay.mirror.current.set_identity(IDENTITY)
    service = relay.begin(section(), section("other"))
    await service.until_opened(5)
    assert service.served.find("gtid") is not None and service.served.find("other") is not None
    assert [one.uuid for one in relay.made[0].settings] == [derived_uuid("mysql", 1, SERVER_UUID)] * 2
    assert relay.made[0].follows


async def test_before_the_source_was_heard_of_nobody_waits_for_views(relay: Relay) -> None:
    service = relay.begin(section())
    await asyncio.wait_for(service.until_opened(60), 1)
    assert "the source was not heard from yet" in service.served.why_not("gtid")
    assert relay.made == []
    relay.mirror.current.set_identity(IDENTITY)
    await append_files(relay.mirror, mysql_series(1, f"{A}:1-3"))
    await until(lambda: service.served.find("gtid"))


async def test_binlogs_of_a_directory_say_in_their_first_file_whose_they_are(relay: Relay) -> None:
    await append_files(relay.mirror, mysql_series(1, f"{A}:1-3"))
    service = relay.begin(section())
    await service.until_opened(5)
    file = relay.mirror.current.files[0]
    assert relay.made[0].settings[0].uuid == derived_uuid("mysql", file.server_id, None)


async def test_a_view_with_the_source_s_own_uuid_is_refused_and_the_others_are_served(relay: Relay) -> None:
    relay.mirror.current.set_identity(IDENTITY)
    with capture_logs() as logs:
        service = relay.begin(section(uuid=SERVER_UUID), section("other"))
        await service.until_opened(5)
    assert service.served.find("gtid") is None and service.served.find("other") is not None
    assert "server_uuid of the source" in service.served.why_not("gtid")
    (line,) = (line for line in logs if line["event"] == "view_not_served")
    assert line["view"] == "gtid" and line["advice"] == "Write another one, or leave it out."


async def test_a_view_that_cannot_be_opened_keeps_no_other_from_being_served(relay: Relay) -> None:
    relay.mirror.current.set_identity(IDENTITY)
    with capture_logs() as logs:
        service = relay.begin(section("bad"), section())
        await service.until_opened(5)
    assert service.served.find("gtid") is not None and service.served.find("bad") is None
    assert service.served.why_not("bad") == "it is damaged."
    (line,) = (line for line in logs if line["event"] == "view_not_served")
    assert (line["view"], line["advice"]) == ("bad", "Make it anew.")


async def test_a_fault_while_views_are_opened_leaves_the_mirror_as_it_is(relay: Relay) -> None:
    relay.mirror.current.set_identity(IDENTITY)

    class Faulty(EmptyViews):
        async def open(self) -> None:
            raise RuntimeError("a fault")

    with capture_logs() as logs:
        service = relay.begin(section(), make=Faulty)
        await service.until_opened(5)
    assert service.served.find("gtid") is None
    assert "the log of the relay says why" in service.served.why_not("gtid")
    assert [line["event"] for line in logs] == ["task_failed"]


async def test_a_stop_while_views_are_opened_does_not_wait_for_them(relay: Relay) -> None:
    relay.mirror.current.set_identity(IDENTITY)

    class Slow(EmptyViews):
        async def open(self) -> None:
            await asyncio.Event().wait()

    service = relay.begin(section(), make=Slow)
    await asyncio.sleep(0)
    await asyncio.wait_for(service.close(), 2)


async def test_without_views_nothing_is_made(relay: Relay) -> None:
    relay.mirror.current.set_identity(IDENTITY)
    service = relay.begin()
    await service.until_opened(5)
    assert relay.made == []
