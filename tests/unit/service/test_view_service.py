"""When views are opened, what is served of them, and what their accounts are told that have to wait."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from relay.archive.archive import Archive
from relay.archive.storage.archived_file import SourceIdentity
from relay.archive.write.options import ArchiveOptions
from relay.config import ViewSection
from relay.downstream.clients import Clients
from relay.downstream.listen_options import ListenOptions
from relay.downstream.served_archive import ServedArchive
from relay.process.growing_pause import growing_pause
from relay.service.view_service import OpenOne, OpenView, ViewService
from relay.view.rules.settings import ViewSettings, derived_uuid
from relay.view.running.view_opening import ViewNotOpened
from relay.view.unopened_view import UnopenedView
from tests.support.generation_filling import A, append_files, mysql_series
from tests.support.view_stand_in import ViewStandIn

SERVER_UUID = "11111111-2222-3333-4444-555555555555"
IDENTITY = SourceIdentity("mysql", "5.6.24-log", 1, SERVER_UUID)


class Opener:
    """Opens views without a file; what stands in `troubles` for a view keeps it from that, one after the other."""

    def __init__(self) -> None:
        self.troubles: dict[str, list[Exception]] = {}
        self.opened: list[ViewStandIn] = []

    async def open_one(self, mirror: Archive, settings: ViewSettings, options: ArchiveOptions) -> ViewStandIn:
        if self.troubles.get(settings.name):
            raise self.troubles[settings.name].pop(0)
        archive = await Archive.open(mirror.directory / "views" / settings.name, options)
        self.opened.append(ViewStandIn(archive, settings))
        return self.opened[-1]


class Relay:
    """What the service is wired with."""

    def __init__(self, mirror: Archive) -> None:
        self.mirror = mirror
        self.opener = Opener()
        self.services: list[ViewService] = []
        self.options = ListenOptions()
        self.clients = Clients(self.options)
        self.unopened: dict[str, UnopenedView] = {}

    def serve(self, view: OpenView) -> ServedArchive:
        return ServedArchive(view.archive, self.clients, self.options)

    def answer_for(self, view: UnopenedView) -> None:
        self.unopened[view.settings.name] = view

    def begin(self, *sections: ViewSection, open_one: OpenOne | None = None) -> ViewService:
        service = ViewService(self.mirror, sections, ArchiveOptions(), open_one or self.opener.open_one, self)
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


def damaged() -> ViewNotOpened:
    return ViewNotOpened("it is damaged.", "Make it again.", may_pass=False, kind="ArchiveCorrupt 0")


def full() -> ViewNotOpened:
    return ViewNotOpened("no room.", "Make some.", may_pass=True, kind="ArchiveWriteError 28")


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


async def test_where_the_source_is_known_views_are_served_before_anybody_is_listened_to(relay: Relay) -> None:
    relay.mirror.current.set_identity(IDENTITY)
    service = relay.begin(section(), section("other"))
    await service.until_opened(5)
    assert service.served.find("gtid") is not None and service.served.find("other") is not None
    assert [one.settings.uuid for one in relay.opener.opened] == [derived_uuid("mysql", 1, SERVER_UUID)] * 2
    assert all(one.follows for one in relay.opener.opened)


async def test_before_the_source_was_heard_of_nobody_waits_for_views(relay: Relay) -> None:
    service = relay.begin(section())
    await asyncio.wait_for(service.until_opened(60), 1)
    assert "the source was not heard from yet" in service.served.why_not("gtid")
    assert relay.opener.opened == []
    relay.mirror.current.set_identity(IDENTITY)
    await append_files(relay.mirror, mysql_series(1, f"{A}:1-3"))
    await until(lambda: service.served.find("gtid"))


async def test_binlogs_of_a_directory_say_in_their_first_file_whose_they_are(relay: Relay) -> None:
    await append_files(relay.mirror, mysql_series(1, f"{A}:1-3"))
    service = relay.begin(section())
    await service.until_opened(5)
    file = relay.mirror.current.files[0]
    assert relay.opener.opened[0].settings.uuid == derived_uuid("mysql", file.server_id, None)


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
    relay.opener.troubles["bad"] = [damaged()]
    with capture_logs() as logs:
        service = relay.begin(section("bad"), section())
        await service.until_opened(5)
    assert service.served.find("gtid") is not None and service.served.find("bad") is None
    assert service.served.why_not("bad") == "it is damaged."
    (line,) = (line for line in logs if line["event"] == "view_not_served")
    assert (line["view"], line["advice"]) == ("bad", "Make it again.")


async def test_a_view_that_could_not_be_opened_is_tried_again_and_that_is_said_once(
    relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relay.service.view_service._FIRST_PAUSE_S", 0.01)
    relay.mirror.current.set_identity(IDENTITY)
    relay.opener.troubles["gtid"] = [full(), full(), full()]
    with capture_logs() as logs:
        service = relay.begin(section())
        await service.until_opened(5)
        assert service.served.find("gtid") is None  # nobody waited for the second attempt
        assert "no room. It is tried again by itself, next at " in service.served.why_not("gtid")
        await until(lambda: service.served.find("gtid"))
    assert [line["event"] for line in logs] == ["view_not_served", "view_served"]
    assert logs[0]["advice"] == "Make some." and 0 < logs[0]["retry_in_s"] <= 0.01
    assert relay.opener.opened[0].follows


async def test_another_trouble_of_the_same_view_is_said_too(relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relay.service.view_service._FIRST_PAUSE_S", 0.01)
    relay.mirror.current.set_identity(IDENTITY)
    denied = ViewNotOpened("denied.", "Give it.", may_pass=True, kind="ArchiveWriteError 13")
    relay.opener.troubles["gtid"] = [full(), denied, full(), denied]
    with capture_logs() as logs:
        service = relay.begin(section())
        await until(lambda: service.served.find("gtid"))
    assert [line.get("what") for line in logs] == ["no room.", "denied.", None]


async def test_pauses_between_attempts_grow_to_half_a_minute() -> None:
    chance = random.Random(1)
    pauses = [growing_pause(failures, 2.0, 30.0, chance) for failures in range(1, 40)]
    assert 1 <= pauses[0] <= 2 and max(pauses) <= 30 and min(pauses[5:]) >= 15


async def test_what_only_a_restart_can_help_is_not_tried_again(relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relay.service.view_service._FIRST_PAUSE_S", 0.001)
    relay.mirror.current.set_identity(IDENTITY)
    relay.opener.troubles["bad"] = [damaged(), damaged()]
    service = relay.begin(section("bad"), section("gtid", uuid=SERVER_UUID))
    await service.until_opened(5)
    await asyncio.wait(service._opening)
    assert len(relay.opener.troubles["bad"]) == 1
    stops = {name: view.status.stop.reason for name, view in relay.unopened.items()}
    assert (stops["bad"].text, stops["bad"].advice) == ("it is damaged.", "Make it again. Then restart the relay.")
    assert stops["gtid"].advice == "Write another one, or leave it out. Then restart the relay."


async def test_a_fault_while_views_are_opened_leaves_the_mirror_as_it_is(relay: Relay) -> None:
    relay.mirror.current.set_identity(IDENTITY)

    relay.opener.troubles["gtid"] = [RuntimeError("a fault")]
    with capture_logs() as logs:
        service = relay.begin(section())
        await service.until_opened(5)
    assert service.served.find("gtid") is None
    assert "the log of the relay says why" in service.served.why_not("gtid")
    assert [line["event"] for line in logs] == ["task_failed"]


async def test_a_stop_while_views_are_opened_does_not_wait_for_them(relay: Relay) -> None:
    relay.mirror.current.set_identity(IDENTITY)

    async def slow(_mirror: Archive, _settings: ViewSettings, _options: ArchiveOptions) -> ViewStandIn:
        await asyncio.Event().wait()
        raise AssertionError("it never ends")

    service = relay.begin(section(), open_one=slow)
    await asyncio.sleep(0)
    await asyncio.wait_for(service.close(), 2)


async def test_without_views_nothing_is_made(relay: Relay) -> None:
    relay.mirror.current.set_identity(IDENTITY)
    service = relay.begin()
    await service.until_opened(5)
    assert relay.opener.opened == []
