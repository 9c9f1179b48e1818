"""Liveness over a Unix socket in the archive: a long path, what an earlier process left, others who hold connections."""

import asyncio
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import structlog.testing

from relay.service.health_socket import HealthSocket

CHECK = Path(__file__).resolve().parents[3] / "deploy/container/healthcheck.py"


def checked(pattern: str) -> subprocess.CompletedProcess[str]:
    environment = {"BINLOG_RELAY_HEALTH": pattern}
    return subprocess.run(
        [sys.executable, "-I", str(CHECK)], env=environment, capture_output=True, text=True, check=False
    )


async def test_the_health_check_of_the_container_asks_it_also_where_the_path_is_long(tmp_path: Path) -> None:
    directory = tmp_path / ("d" * 120) / "source"
    directory.mkdir(parents=True)
    health = HealthSocket(directory)
    path = health.path
    assert path.parent == directory.parent
    path.write_text("left by an earlier process")
    await health.begin()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    done = await asyncio.to_thread(checked, f"{directory.parent}/*.health.sock")
    assert (done.returncode, done.stderr) == (0, "")
    health.close()
    assert not path.exists()
    done = await asyncio.to_thread(checked, str(path))
    assert done.returncode == 1
    assert "there is no such socket" in done.stderr


async def test_who_holds_connections_locks_nobody_out(tmp_path: Path) -> None:
    health = HealthSocket(tmp_path / "source")
    await health.begin()
    place = os.open(tmp_path, os.O_PATH)
    address, held = f"/proc/self/fd/{place}/{health.path.name}", []
    for _ in range(40):
        held.append(await asyncio.open_unix_connection(address))
    for _ in range(5):
        reader, writer = await asyncio.open_unix_connection(address)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: relay\r\n\r\n")
        assert (await asyncio.wait_for(reader.read(), 2)).endswith(b"\r\n\r\nok\n")
        writer.close()
    for _reader, writer in held:
        writer.close()
    os.close(place)
    health.close()


async def test_a_directory_that_takes_no_socket_is_told_and_stops_nothing(tmp_path: Path) -> None:
    health = HealthSocket(tmp_path / "missing" / "source")
    with structlog.testing.capture_logs() as logs:
        await health.begin()
    health.close()
    assert [line["event"] for line in logs] == ["health_socket_failed"]


@pytest.mark.parametrize("answer", [b"HTTP/1.0 503 Busy\r\n\r\n", b""])
def test_the_health_check_wants_ok(tmp_path: Path, answer: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        place = os.open(tmp_path, os.O_PATH)
        listening.bind(f"/proc/self/fd/{place}/source.health.sock")
        listening.listen()
        asked = subprocess.Popen(
            [sys.executable, "-I", str(CHECK)],
            env={"BINLOG_RELAY_HEALTH": str(tmp_path / "source.health.sock")},
            stderr=subprocess.PIPE,
        )
        taken, _ = listening.accept()
        with taken:
            taken.recv(100)
            taken.sendall(answer)
        _out, errors = asked.communicate(timeout=20)
        os.close(place)
    assert asked.returncode == 1
    assert b"it answers" in errors
