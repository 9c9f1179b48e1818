"""The relay's page in a real browser, while the source dies, a replica goes away and names are markup."""

import os
import resource
import signal
from collections.abc import Iterator

import pytest

from tests.interop.conftest import ChainFactory
from tests.support.browser import PHONE, Browser, browser
from tests.support.chain import Chain, wait_until
from tests.support.client_tools import need_tool
from tests.support.free_port import free_port
from tests.support.http_relay import TOKEN, http_section

pytestmark = pytest.mark.interop
MARKUP = "<i>night</i>"


@pytest.fixture(autouse=True)
def _needs_chromium() -> None:
    need_tool("chromium")


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def chain(chains: ChainFactory, port: int) -> Chain:
    made = chains("mysql56", sections={"http": {"enabled": True, "port": port}})
    made.source.execute_many(["CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY, v TEXT)"])
    made.wait_archived()
    return made


@pytest.fixture
def page(chain: Chain, port: int) -> Iterator[Browser]:
    with browser() as opened:
        opened.driver.get(f"http://127.0.0.1:{port}/")
        yield opened


def test_a_quiet_night_is_told_in_one_word_and_each_part_in_a_box(chain: Chain, page: Browser) -> None:
    replica = chain.replica("mysql56")
    page.until_text("#verdict-word", "Quiet")
    page.until_text("#replicas tbody", "has everything")
    assert str(replica.server_id) in page.text("#replicas tbody")
    boxes = page.text("#path")
    assert "attached" in boxes and "complete" in boxes and "1 is attached" in boxes
    assert "All of it is there" in page.until_text("#map-note", "file")
    assert page.complaints() == []


def test_a_source_that_dies_and_comes_back_is_seen_without_reloading(chain: Chain, page: Browser) -> None:
    page.until_text("#verdict-word", "Quiet")
    chain.source.stop()
    page.until_text("#verdict-word", "wrong")
    assert "cannot be reached" in page.text("#path")
    assert page.driver.title.startswith("WRONG")
    chain.source.start(server_id=1)
    page.until_text("#verdict-word", "Quiet")


def test_a_replica_that_stands_still_is_behind_and_one_that_left_is_named(chain: Chain, page: Browser) -> None:
    replica = chain.replica("mysql56")
    page.until_text("#replicas tbody", "has everything")
    os.kill(replica.pid, signal.SIGSTOP)
    try:
        # More than the sockets between them hold.
        for number in range(400):
            chain.source.sql(f"INSERT INTO shop.t VALUES ({number}, '{'x' * 60_000}')")
        page.until_text("#replicas tbody", "MiB")
    finally:
        os.kill(replica.pid, signal.SIGCONT)
    replica.stop()
    page.until_text("#replicas tbody", "left")
    assert "something to look at" in page.until_text("#verdict-word", "look")


def test_what_a_replica_has_applied_is_told_where_its_account_is_given(chain: Chain, page: Browser) -> None:
    replica = chain.replica("mysql56")
    assert "[[replica]]" in page.until_text("#replicas tbody", "not known: relay.toml gives no account at this replica")
    assert "password_file" in page.until_text("#replicas-account", "Sent is not applied")
    replica.execute_many(
        [
            "SET sql_log_bin = 0",
            "GRANT REPLICATION CLIENT ON *.* TO 'relay_watch'@'%' IDENTIFIED BY 'the-watchers-password'",
        ]
    )
    account = {"user": "relay_watch", "password": "the-watchers-password", "ssl_mode": "disabled"}
    chain.relay.add_replica(host="127.0.0.1", port=replica.port, **account)
    chain.relay.reload()
    page.until_text("#replicas tbody", "everything that it is served")
    assert page.script("return document.getElementById('replicas-account').hidden") is True
    replica.sql("STOP SLAVE SQL_THREAD")
    chain.source.sql("INSERT INTO shop.t VALUES (1, 'x')")
    page.until_text("#replicas tbody", "its SQL thread is stopped")
    assert "something to look at" in page.until_text("#verdict-word", "look")
    assert "has applied" in page.text("#verdict-reasons")
    assert page.complaints() == []


def test_a_relay_that_ends_is_told_with_the_time_of_what_is_shown(chain: Chain, page: Browser) -> None:
    page.until_text("#verdict-word", "Quiet")
    chain.relay.kill()
    page.until_text("#verdict-word", "does not answer")
    assert "Nothing new since" in page.text("#verdict-reasons")


def test_a_full_disk_is_named_and_over_when_there_is_room(chain: Chain, page: Browser) -> None:
    page.until_text("#verdict-word", "Quiet")
    unlimited = resource.RLIM_INFINITY
    resource.prlimit(chain.relay.pid, resource.RLIMIT_FSIZE, (64 << 10, unlimited))
    chain.source.sql(f"INSERT INTO shop.t VALUES (1, '{'x' * 60_000}'), (2, '{'y' * 60_000}')")
    page.until_text("#verdict-word", "wrong")
    page.until_text("#verdict-reasons", "File too large")
    resource.prlimit(chain.relay.pid, resource.RLIMIT_FSIZE, (unlimited, unlimited))
    page.until_text("#verdict-word", "Quiet")


def test_names_are_text_and_nothing_is_asked_of_others(chain: Chain, port: int, page: Browser) -> None:
    chain.relay.add_account(user=MARKUP, password="night", markers="strip")
    chain.relay.reload()
    replica = chain.server("mysql56")
    start = chain.first_position()
    replica.attach("127.0.0.1", chain.relay.port, MARKUP, "night", start.file, start.position)
    page.until_text("#replicas tbody", MARKUP)
    assert page.script("return document.querySelectorAll('#replicas i').length") == 0
    asked = page.asked()
    assert asked and all(url.startswith(f"http://127.0.0.1:{port}/") for url in asked if not url.startswith("data:"))


def test_a_place_inside_a_transaction_is_refused_with_good_ones(chain: Chain, page: Browser) -> None:
    end = chain.wait_published()
    fill = (
        "const form = document.getElementById('check'); form.elements.file.value = arguments[0];"
        "form.elements.offset.value = arguments[1]; form.requestSubmit();"
    )
    page.script(fill, end.file, str(end.position - 3))
    told = page.until_text("#check-answer", "Good places")
    assert f"{end.file}:{end.position}" in told
    page.script(fill, end.file, str(end.position))
    page.until_text("#check-answer", "a replica may start here")
    page.script(fill, "no-such.000001", "4")
    page.until_text("#check-answer", "no such file")


def test_the_map_goes_by_keyboard_and_has_roles(chain: Chain, page: Browser) -> None:
    for _ in range(3):
        chain.source.sql("FLUSH LOGS")
    chain.wait_archived()
    page.driver.refresh()
    wait_until(lambda: page.script("return document.querySelectorAll('#map button').length") == 4, "four files")
    keys = (
        "const send = (key) => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));"
        "document.querySelector('#map button[tabindex=\"0\"]').focus(); send('Home'); send('ArrowRight');"
        "return document.activeElement.getAttribute('aria-label');"
    )
    told = str(page.script(keys))
    assert told.startswith(f"{chain.source.binlogs()[1].name}: complete")
    assert page.text("#map-piece") == told
    roles = {node["role"]["value"] for node in page.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]}
    assert {"status", "listbox", "option", "table", "main", "heading"} <= roles


@pytest.mark.parametrize("dark", [False, True])
def test_a_phone_shows_all_of_it_without_scrolling_sideways(chain: Chain, port: int, dark: bool) -> None:
    chain.replica("mysql56")
    with browser(PHONE, dark=dark) as phone:
        phone.driver.get(f"http://127.0.0.1:{port}/")
        phone.until_text("#replicas tbody", "has everything")
        sizes = phone.script("return [document.documentElement.scrollWidth, window.innerWidth]")
        assert isinstance(sizes, list) and sizes[0] <= sizes[1]
        colour = phone.script("return getComputedStyle(document.body).backgroundColor")
        assert colour == ("rgb(15, 19, 23)" if dark else "rgb(255, 255, 255)")


def test_a_page_whose_relay_wants_a_token_asks_for_it(chains: ChainFactory, port: int) -> None:
    made = chains("mysql56", sections=http_section(port))
    made.wait_archived()
    with browser() as opened:
        opened.driver.get(f"http://127.0.0.1:{port}/")
        opened.until_text("#token-form", "Token of the relay")
        give = "document.getElementById('token').value = arguments[0]; document.getElementById('token-form').requestSubmit()"
        opened.script(give, "another-token")
        opened.until_text("#token-wrong", "not the relay's")
        opened.script(give, TOKEN)
        opened.until_text("#verdict-word", "Quiet")
        assert TOKEN not in opened.driver.page_source
