"""Logins from far away: through a proxy that delays everything for half a round trip, in each direction."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pymysql


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_s: float) -> None:
    loop = asyncio.get_running_loop()
    came: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def write() -> None:
        while True:
            due, data = await came.get()
            await asyncio.sleep(due - loop.time())
            if not data:
                writer.close()
                return
            with contextlib.suppress(OSError):
                writer.write(data)

    writing = loop.create_task(write())
    try:
        while data := await reader.read(65536):
            came.put_nowait((loop.time() + delay_s, data))
    except OSError:
        pass
    came.put_nowait((loop.time() + delay_s, b""))
    await writing


@contextlib.contextmanager
def far_away(port: int, round_trip_s: float) -> Iterator[int]:
    """Yield a port from which `port` is that far away."""

    async def taken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Cancelled at the end: asyncio's server would tell of it.
        opened = [writer]
        with contextlib.suppress(OSError, asyncio.CancelledError):
            there, to = await asyncio.open_connection("127.0.0.1", port)
            opened.append(to)
            ways = (_pass_on(reader, to, round_trip_s / 2), _pass_on(there, writer, round_trip_s / 2))
            await asyncio.gather(*ways)
        for one in opened:
            one.transport.abort()

    loop, began = asyncio.new_event_loop(), threading.Event()
    server: list[asyncio.Server] = []

    def run() -> None:
        asyncio.set_event_loop(loop)
        server.append(loop.run_until_complete(asyncio.start_server(taken, "127.0.0.1", 0)))
        began.set()
        loop.run_forever()
        server[0].close()
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.run_until_complete(asyncio.sleep(0.01))
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert began.wait(10)
        yield int(server[0].sockets[0].getsockname()[1])
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def logins(port: int, count: int, round_trip_s: float, at_once: int = 4, **account: Any) -> tuple[int, float, set[str]]:
    """Return how many of `count` logins succeed at the first try, the longest of them in seconds, and the errors of the others.

    `account` is user and password.
    """
    met: set[str] = set()

    def one(through: int) -> float | None:
        began = time.monotonic()
        try:
            link = pymysql.connect(host="127.0.0.1", port=through, connect_timeout=9, read_timeout=9, **account)
            link.query("SELECT 1")
            link.close()
        except (pymysql.MySQLError, OSError) as error:
            met.add(str(error))
            return None
        return time.monotonic() - began

    with far_away(port, round_trip_s) as through, ThreadPoolExecutor(at_once) as threads:
        took = [seconds for seconds in threads.map(one, [through] * count) if seconds is not None]
    return len(took), max(took, default=0.0), met
