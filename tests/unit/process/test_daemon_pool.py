"""Threads that wait for something hold up nobody's end."""

import subprocess
import sys
import threading
import time
from concurrent.futures import Future

import pytest

from relay.process.daemon_pool import DaemonPool


def test_work_is_done_by_so_many_threads_at_most_and_what_it_raises_is_told() -> None:
    begun: list[str] = []
    pool = DaemonPool(3, "pool-under-test", lambda: begun.append(threading.current_thread().name))
    gate = threading.Event()
    held: list[Future[bool]] = [pool.submit(gate.wait, 10) for _ in range(9)]
    time.sleep(0.05)
    assert sorted(begun) == [f"pool-under-test_{number}" for number in range(3)]
    gate.set()
    assert [one.result(10) for one in held] == [True] * 9
    with pytest.raises(ZeroDivisionError):
        pool.submit(lambda: 1 // 0).result(10)
    assert pool.submit(pow, 2, 5).result(10) == 32
    assert len(begun) == 3
    pool.close()


def test_when_it_is_closed_what_waits_is_cancelled_and_what_comes_too() -> None:
    pool = DaemonPool(1, "pool-under-test")
    gate = threading.Event()
    at_work = pool.submit(gate.wait, 10)
    while not at_work.running():
        time.sleep(0.001)
    waiting = pool.submit(gate.wait, 10)
    pool.close()
    assert waiting.cancelled() and pool.submit(gate.wait, 10).cancelled()
    gate.set()
    assert at_work.result(10)


def test_a_process_ends_although_a_thread_of_it_waits() -> None:
    text = (
        "import time; from relay.process.daemon_pool import DaemonPool; "
        "pool = DaemonPool(1, 'waits'); pool.submit(time.sleep, 60); time.sleep(0.2); pool.close()"
    )
    began = time.monotonic()
    assert subprocess.run([sys.executable, "-c", text], timeout=50, check=False).returncode == 0
    assert time.monotonic() - began < 20
