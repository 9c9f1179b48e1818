"""Tasks, callbacks of the event loop, threads: work that runs in parallel. None of it ends by an exception silently.

asyncio reports a task's exception when the task is forgotten, and code that keeps one to cancel it later never forgets it. So tasks
of relay/ are created here, and here only. An unforeseen exception of one is an internal fault: it is logged when it comes up, with
its traceback, and the code that depends on the task is notified, to end what can only end with it.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final, ParamSpec, TypeVar

import structlog

P = ParamSpec("P")
T = TypeVar("T")
OnFault = Callable[[Exception], object]

_NOTE: Final = "a fault of binlog-relay: please report it with this line"


def begin_task(
    work: Coroutine[Any, Any, T],
    name: str,
    on_fault: OnFault | None = None,
    *,
    expected: tuple[type[Exception], ...] = (),
) -> asyncio.Task[T]:
    """Run `work` in parallel to its caller, on the loop. name: what it does, for the log.

    An exception that ends it is logged (`task_failed`), then `on_fault(error)` is called on the loop; a cancellation is none.
    expected: those are for the code that awaits the task, and not logged.
    """
    task = asyncio.get_running_loop().create_task(work)
    task.add_done_callback(lambda ended: _look(ended, name, expected, on_fault))
    return task


async def run_to_end(work: Coroutine[Any, Any, T], name: str, *, expected: tuple[type[Exception], ...] = ()) -> T:
    """Await `work`, which continues to its end if the caller is cancelled. Raises what it raises.

    If no caller is left, an exception is logged. expected: exceptions that are no internal fault.
    """
    task = asyncio.get_running_loop().create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(lambda ended: _look(ended, name, expected, is_awaited=False))
        raise


def _look(
    ended: asyncio.Task[T],
    name: str,
    expected: tuple[type[Exception], ...],
    on_fault: OnFault | None = None,
    *,
    is_awaited: bool = True,
) -> None:
    """Report the unforeseen end of a task; an expected exception only if no code awaits the task."""
    error = None if ended.cancelled() else ended.exception()
    if isinstance(error, expected):
        if not is_awaited:
            structlog.get_logger().warning(
                "task_failed", task=name, what=str(error), note="nobody waits for it any more"
            )
    elif isinstance(error, Exception):
        tell_fault("task_failed", error, on_fault, task=name)


def guarded(callback: Callable[P, object], name: str, on_fault: OnFault) -> Callable[P, None]:
    """Return `callback` for the loop's timers and queues: an exception out of it is logged, then `on_fault(error)` is called."""

    def call(*args: P.args, **more: P.kwargs) -> None:
        try:
            callback(*args, **more)
        except Exception as error:
            tell_fault("callback_failed", error, on_fault, callback=name)

    return call


def tell_fault(event: str, error: Exception, on_fault: OnFault | None = None, **facts: object) -> None:
    """Log an unforeseen exception, with its traceback, then call `on_fault(error)`."""
    what = f"{type(error).__name__}: {error}"
    structlog.get_logger().error(event, **facts, what=what, note=_NOTE, exc_info=error)
    if on_fault is not None:
        on_fault(error)


def watch_process(loop: asyncio.AbstractEventLoop, on_thread_fault: OnFault) -> Callable[[], None]:
    """Log what is caught nowhere else: callbacks of the loop; after the end of a thread `on_thread_fault` is also called, on the
    loop. Return a function that undoes this."""

    def in_loop(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error, what = context.get("exception"), str(context.get("message"))
        if isinstance(error, Exception):
            tell_fault("callback_failed", error, callback=what)
        else:
            structlog.get_logger().error("event_loop_complains", what=what, note=_NOTE)

    def in_thread(ended: threading.ExceptHookArgs) -> None:
        error, name = ended.exc_value, ended.thread.name if ended.thread is not None else "unknown"
        if isinstance(error, Exception):
            tell_fault("thread_failed", error, lambda it: loop.call_soon_threadsafe(on_thread_fault, it), thread=name)

    def take_back() -> None:
        loop.set_exception_handler(None)
        threading.excepthook = before

    before = threading.excepthook
    loop.set_exception_handler(in_loop)
    threading.excepthook = in_thread
    return take_back
