"""Threads that end with the process, whatever they wait for: Python itself waits for those of its own pools at its end."""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, Final, TypeVar

T = TypeVar("T")
_END: Final = None
_Work = tuple[Callable[[], Any], Future[Any]]


class DaemonPool(Executor):
    """At most `size` threads, each created when there is work for it. `name`: of the threads, followed by a number.

    begin: called first in each. The pool is not for work that must not be broken off.
    """

    def __init__(self, size: int, name: str, begin: Callable[[], object] = lambda: None) -> None:
        self._size = size
        self._name = name
        self._begin = begin
        self._work: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._threads = 0
        self._idle = 0
        self._is_closed = False
        self._lock = threading.Lock()

    def submit(self, call: Callable[..., T], /, *arguments: Any, **named: Any) -> Future[T]:
        """Have a thread call it. The future has the result. If it is cancelled, the call is not made."""
        future: Future[T] = Future()
        with self._lock:
            if not self._is_closed:
                self._work.put((lambda: call(*arguments, **named), future))
                if self._idle:
                    self._idle -= 1
                elif self._threads < self._size:
                    name = f"{self._name}_{self._threads}"
                    self._threads += 1
                    threading.Thread(target=self._run, name=name, daemon=True).start()
                return future
        future.cancel()
        return future

    def close(self) -> None:
        """Cancel what waits; running calls are not waited for."""
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

    def shutdown(self, wait: bool = False, *, cancel_futures: bool = True) -> None:
        """Call `close`: nothing is waited for."""
        self.close()

    def _run(self) -> None:
        self._begin()
        while (wanted := self._work.get()) is not None:
            call, future = wanted
            if future.set_running_or_notify_cancel():
                try:
                    found = call()
                except BaseException as error:
                    future.set_exception(error)
                else:
                    future.set_result(found)
                    del found
            del call, future, wanted
            with self._lock:
                self._idle += 1
