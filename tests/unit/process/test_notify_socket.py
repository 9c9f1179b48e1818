"""What a service manager hears, on a real unix datagram socket."""

import asyncio
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from relay.process.notify_socket import NotifySocket


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(10)
        yield listening


def address(manager: socket.socket) -> str:
    name = manager.getsockname()
    return name if isinstance(name, str) else "@" + name[1:].decode()


async def heard(manager: socket.socket) -> str:
    return (await asyncio.to_thread(manager.recv, 4096)).decode()


def heard_now(manager: socket.socket) -> list[str]:
    manager.setblocking(False)
    found = []
    try:
        while True:
            found.append(manager.recv(4096).decode())
    except BlockingIOError:
        return found
    finally:
        manager.settimeout(10)


async def test_a_start_a_reload_and_an_end_are_told_in_their_order(manager: socket.socket) -> None:
    service = NotifySocket(address(manager))
    service.begin()
    service.ready("serves")
    service.reloading()
    service.ready("serves on")
    service.stopping("ends")
    service.close()
    told = [text for text in heard_now(manager) if not text.startswith("EXTEND_TIMEOUT_USEC=")]
    reloading = told.pop(1).split("\n")
    assert told == ["READY=1\nSTATUS=serves", "READY=1\nSTATUS=serves on", "STOPPING=1\nSTATUS=ends"]
    assert reloading[0] == "RELOADING=1"
    # systemd compares it with its own clock: later ones of the same reload are not taken for the answer.
    assert 0 <= time.monotonic() - int(reloading[1].removeprefix("MONOTONIC_USEC=")) / 1e6 < 60


async def test_a_start_that_takes_long_asks_for_more_time(manager: socket.socket) -> None:
    service = NotifySocket(address(manager), watchdog_s=0.03)
    service.begin()
    assert [await heard(manager) for _ in range(3)] == ["EXTEND_TIMEOUT_USEC=30000000\nWATCHDOG=1"] * 3
    service.close()


async def test_the_watchdog_hears_a_loop_that_runs_and_not_one_that_stands_still(manager: socket.socket) -> None:
    service = NotifySocket(address(manager), watchdog_s=0.03)
    service.begin()
    service.ready("serves")
    for _ in range(6):
        last = await heard(manager)
    assert last == "WATCHDOG=1"
    heard_now(manager)
    time.sleep(0.2)  # the loop stands still
    assert heard_now(manager) == []
    assert await heard(manager) == "WATCHDOG=1"
    service.close()


async def test_without_a_watchdog_nothing_is_told_while_it_serves(manager: socket.socket) -> None:
    service = NotifySocket(address(manager))
    service.begin()
    heard_now(manager)
    service.ready("serves")
    service._tick()
    assert heard_now(manager) == ["READY=1\nSTATUS=serves"]
    service.close()


async def test_an_abstract_socket_is_known_by_its_at_sign() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0binlog-relay-test-{os.getpid()}")
        service = NotifySocket(address(manager))
        service.begin()
        service.close()
        assert heard_now(manager) == ["EXTEND_TIMEOUT_USEC=30000000"]


async def test_what_finds_no_room_is_told_when_there_is_some(manager: socket.socket) -> None:
    service = NotifySocket(address(manager))
    service.begin()
    filling = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    filling.setblocking(False)
    with pytest.raises(BlockingIOError):
        while True:
            filling.sendto(b"other", address(manager))
    filling.close()
    service.ready("serves")
    for _ in range(100):
        assert len(service._waiting) <= 8
        service.reloading()
    service.ready("serves on")
    heard_now(manager)
    while await heard(manager) != "READY=1\nSTATUS=serves on":
        pass
    service.close()


@pytest.mark.parametrize("name", ["/nobody/listens/here", "no-path", "@nobody-has-this-name-of-a-test"])
async def test_a_socket_that_cannot_be_used_is_said_once_and_stops_nothing(name: str) -> None:
    service = NotifySocket(name, watchdog_s=1)
    with capture_logs() as said:
        service.begin()
        service.ready("serves")
        service.stopping("ends")
        service.close()
    assert [line["event"] for line in said] == ["service_not_notified"]
    assert name in said[0]["what"]


@pytest.mark.parametrize(
    ("more", "tick_s"),
    [
        ({"WATCHDOG_USEC": "30000000"}, 10.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 10.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({}, None),
    ],
)
def test_the_environment_says_where_and_how_often_and_is_for_nobody_else(
    more: dict[str, str], tick_s: float | None
) -> None:
    environment = {"NOTIFY_SOCKET": "/run/systemd/notify", "HOME": "/", **more}
    service = NotifySocket.of_service(environment)
    assert (service._address, service._tick_s) == ("/run/systemd/notify", tick_s)
    assert environment == {"HOME": "/"}
