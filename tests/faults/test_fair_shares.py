"""Whoever has no right to it locks nobody out: strangers, one account, one address, HTTP connections that say nothing.

The long form: `python -m tests.floods`.
"""

import contextlib
import time
from collections.abc import Iterator

import pymysql
import pytest

from tests.floods import ADMIN, REPLICA, asked_health, asked_healthz, attacked_relay, http_port
from tests.support.far_client import logins
from tests.support.relay_process import RelayProcess
from tests.support.stranger_flood import stranger_flood

pytestmark = pytest.mark.usefixtures("relays_of_their_own")

SHARE = 20
SLOW = (
    "SELECT COUNT(*) FROM information_schema.COLUMNS a, information_schema.COLUMNS b, information_schema.COLUMNS c "
    "WHERE a.TABLE_NAME < b.TABLE_NAME AND b.COLUMN_NAME <> c.COLUMN_NAME"
)


@pytest.fixture(scope="module")
def relay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RelayProcess]:
    with attacked_relay(tmp_path_factory.mktemp("attacked"), max_connections=SHARE, max_unauthenticated=300) as one:
        yield one
        assert one.stop() == 0
        assert not [line for line in one.log_lines() if "Traceback" in str(line) or line["event"].endswith("_failed")]


def connected(relay: RelayProcess, address: str = "127.0.0.1", **account: str) -> pymysql.Connection:
    return pymysql.connect(host="127.0.0.1", port=relay.port, bind_address=address, connect_timeout=20, **account)


@pytest.mark.parametrize("kind", ["silent", "mixed"])
def test_strangers_of_the_same_address_leave_a_far_replica_the_time_for_its_login(
    relay: RelayProcess, kind: str
) -> None:
    # 300 places, 250 of them held by those who talk: at 100 a second each of them lasts three seconds.
    with stranger_flood(relay.port, 100, kind, ["127.0.0.1"]):
        came, _longest_s, met = logins(relay.port, 8, 0.05, at_once=8, **REPLICA)
    assert (came, met) == (8, set())


def test_strangers_of_other_addresses_leave_a_replica_that_is_far_away_all_the_time(relay: RelayProcess) -> None:
    strangers = [f"127.0.1.{number}" for number in range(1, 21)]
    with stranger_flood(relay.port, 300, "mixed", strangers):
        # Of 300 places each of them has fifteen: whoever has one or two is never the one that has most.
        came, _longest_s, met = logins(relay.port, 4, 0.4, at_once=2, **REPLICA)
    assert (came, met) == (4, set())


def test_one_account_that_takes_every_place_locks_neither_the_admin_nor_another_address_out(
    relay: RelayProcess,
) -> None:
    with contextlib.ExitStack() as held:
        for _ in range(SHARE):
            held.enter_context(contextlib.closing(connected(relay, "127.0.0.2", **REPLICA)))
        with pytest.raises(pymysql.OperationalError, match="Too many connections"):
            connected(relay, "127.0.0.2", **REPLICA)
        began = time.monotonic()
        admin = held.enter_context(contextlib.closing(connected(relay, "127.0.0.2", **ADMIN)))
        assert time.monotonic() - began < 5
        # The same account at an address of its own: one of those at the other one goes.
        held.enter_context(contextlib.closing(connected(relay, "127.0.0.3", **REPLICA)))
        (evicted,) = relay.logged("connection_evicted")
        assert (evicted["user"], evicted["newcomer"]) == (REPLICA["user"], REPLICA["user"])
        with admin.cursor() as cursor:
            cursor.execute("SHOW PROCESSLIST")
            users = [row[1] for row in cursor.fetchall()]
        assert (users.count(REPLICA["user"]), users.count(ADMIN["user"])) == (SHARE, 1)


def test_slow_selects_of_one_account_do_not_make_an_admin_wait(relay: RelayProcess) -> None:
    slow = [connected(relay, **REPLICA) for _ in range(10)]
    admin = connected(relay, **ADMIN)
    for link in slow:
        link._execute_command(3, SLOW)
    began = time.monotonic()
    with admin.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM information_schema.PROCESSLIST")
        cursor.fetchall()
    took_s = time.monotonic() - began
    for link in (*slow, admin):
        link._force_close()
    # One after the other they take twenty seconds.
    assert took_s < 5


def test_connections_that_say_nothing_do_not_make_a_relay_look_dead(relay: RelayProcess) -> None:
    port = http_port(relay)
    with stranger_flood(port, 400, "silent", ["127.0.0.1"]):
        assert (asked_healthz(port, 30), asked_health(relay, 30)) == (30, 30)
