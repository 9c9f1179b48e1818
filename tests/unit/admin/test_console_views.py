"""What is told of views, and to whom: who is served one hears of that one alone, unless the account may change the relay."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from protocol.errors import StatementRefused
from protocol.resultset import Rows
from protocol.statements.requests import FindViewPlace, ListViews
from relay.admin.console import Console
from relay.admin.procedures import view_procedures
from relay.archive.archive import Archive
from relay.archive.storage.files import CATALOG_NAME
from relay.view.rules.settings import ViewSettings
from relay.view.running.view import View
from tests.support.archive_filling import fill
from tests.support.binlog_builder import BinlogBuilder
from tests.support.console_fakes import FakeConnections, FakeSource, a_client
from tests.support.view_making import made_view, marked, settings, until_made

FILE = "mysql-bin.000001"


class Consoles(NamedTuple):
    """Of the mirror and of the views `one` and `other`."""

    mirror: Console
    one: Console
    place: Path

    async def names(self, *, view: str | None, is_admin: bool = False) -> Sequence[object]:
        """Of the views that such an account is told of."""
        console = self.mirror if view is None else self.one
        answer = await console.answer(ListViews(), a_client(view=view, is_admin=is_admin))
        assert isinstance(answer, Rows)
        return [row[0] for row in answer.rows]

    async def find(self, name: str, *, view: str | None, is_admin: bool = False) -> Rows:
        """A place of the view `name`, as such an account asks for it."""
        console = self.mirror if view is None else self.one
        request = FindViewPlace(name, "source", FILE, 4)
        answer = await console.answer(request, a_client(view=view, is_admin=is_admin))
        assert isinstance(answer, Rows)
        return answer


@pytest.fixture
async def consoles(tmp_path: Path) -> AsyncIterator[Consoles]:
    made = BinlogBuilder("mysql", version="5.6.24-log").transaction(20)
    await fill(tmp_path, (FILE, marked(made.data)))
    mirror = await Archive.open(tmp_path)
    async with contextlib.AsyncExitStack() as stack:

        async def made_one(wanted: ViewSettings) -> View:
            view = await stack.enter_async_context(made_view(mirror, wanted))
            await until_made(view)
            return view

        one = await made_one(settings(name="one"))
        other = await made_one(settings(name="other", gtids="anonymous"))
        shown = Console(mirror, FakeSource(), FakeConnections())
        of_one = Console(one.archive, FakeSource(), FakeConnections(), view=one, mirror=shown)
        shown.add_view(one)
        shown.add_view(other)
        yield Consoles(shown, of_one, tmp_path)
        shown.close()
    await mirror.close()


async def test_an_account_with_a_view_is_told_of_that_view_alone(consoles: Consoles) -> None:
    assert await consoles.names(view="one") == ["one"]
    assert len((await consoles.find("one", view="one")).rows) == 1
    with pytest.raises(StatementRefused, match=r"There is no view 'other': relay.toml has one$"):
        await consoles.find("other", view="one")


async def test_accounts_of_the_mirror_and_those_that_may_change_the_relay_are_told_of_all(consoles: Consoles) -> None:
    for view, is_admin in ((None, False), (None, True), ("one", True)):
        assert await consoles.names(view=view, is_admin=is_admin) == ["one", "other"]
        assert len((await consoles.find("other", view=view, is_admin=is_admin)).rows) == 1


async def test_however_many_look_for_places_and_go_away_one_thread_is_busy_with_it(
    consoles: Consoles, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once, most, going_on = 0, 0, threading.Event()
    look_up = view_procedures.place_found

    def counted(*arguments: object) -> Rows:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        going_on.wait(10)
        try:
            return look_up(*arguments)  # type: ignore[arg-type]
        finally:
            at_once -= 1

    monkeypatch.setattr(view_procedures, "place_found", counted)
    asked = [asyncio.create_task(consoles.find("one", view="one")) for _ in range(20)]
    while not at_once:
        await asyncio.sleep(0)
    for task in asked[::2]:
        task.cancel()
    going_on.set()
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert most == 1
    assert sum(isinstance(answer, Rows) for answer in answers) == 10


async def test_a_catalog_that_cannot_be_read_is_a_refusal_by_name(consoles: Consoles) -> None:
    (consoles.place / "views" / "one" / CATALOG_NAME).write_bytes(b"no database at all")
    with pytest.raises(StatementRefused, match=r"cannot be looked up now: .*catalog"):
        await consoles.find("one", view="one")
