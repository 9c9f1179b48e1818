"""Threads that end with the process, whatever they wait for: Python itself waits for those of its own pools at its end."""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

_END: Final = None


class DaemonPool:
    """At most `size` threads, each made when there is work for it. `name`: of the threads, with a number behind it."""

    def __init__(self, size: int, name: str) -> None:
        self._size = size
        self._name = name
        self._work: queue.SimpleQueue[tuple[Callable[[], None], Future[None]] | None] = queue.SimpleQueue()
        self._threads = 0
        self._idle = 0
        self._is_closed = False
        self._lock = threading.Lock()

    def submit(self, call: Callable[[], None]) -> Future[None]:
        """Has a thread call it. What it raises is in the future. Cancelled: it is not called."""
        future: Future[None] = Future()
        with self._lock:
            if self._is_closed:
                future.cancel()
                return future
            self._work.put((call, future))
            if self._idle:
                self._idle -= 1
            elif self._threads < self._size:
                name = f"{self._name}_{self._threads}"
                self._threads += 1
                threading.Thread(target=self._run, name=name, daemon=True).start()
        return future

    def close(self) -> None:
        """What waits is cancelled; what is at work is not waited for."""
        with self._lock:
            self._is_closed = True
            threads = self._threads
        while True:
            try:
                waiting = self._work.get_nowait()
            except queue.Empty:
                break
            if waiting is not None:
                waiting[1].cancel()
        for _ in range(threads):
            self._work.put(_END)

    def _run(self) -> None:
        while (wanted := self._work.get()) is not None:
            call, future = wanted
            if future.set_running_or_notify_cancel():
                try:
                    call()
                except BaseException as error:
                    future.set_exception(error)
                else:
                    future.set_result(None)
            del call, future, wanted
            with self._lock:
                self._idle += 1
