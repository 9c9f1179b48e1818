"""What runs beside the rest: tasks, callbacks of the event loop, threads. None of it ends by an exception without a word.

asyncio tells of a task's exception when the task is forgotten, and whoever keeps one to cancel it later never forgets it.
So tasks of relay/ are made here, and here only. What leaves one by surprise is a fault of ours: it is logged where it
comes up, with its traceback, and whoever depends on the task is told, to end what can only end with it.
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
    """Runs `work` beside its caller, on the loop. name: what it does, for the log.

    An exception that ends it is logged (`task_failed`), then `on_fault(error)` is called on the loop; being cancelled is
    none. expected: those are for somebody who awaits the task, and not logged.
    """
    task = asyncio.get_running_loop().create_task(work)
    task.add_done_callback(lambda ended: _look(ended, name, expected, on_fault))
    return task


async def run_to_end(work: Coroutine[Any, Any, T], name: str, *, expected: tuple[type[Exception], ...] = ()) -> T:
    """Awaits `work`, which goes on to its end where the caller is cancelled. Raises what it raises.

    With nobody left to hear it, an exception is logged. expected: those that are no fault of ours.
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
    """Tells how a task has ended, where nobody foresaw it; what was expected, only where nobody awaits the task."""
    error = None if ended.cancelled() else ended.exception()
    if isinstance(error, expected):
        if not is_awaited:
            structlog.get_logger().warning(
                "task_failed", task=name, what=str(error), note="nobody waits for it any more"
            )
    elif isinstance(error, Exception):
        tell_fault("task_failed", error, on_fault, task=name)


def guarded(callback: Callable[P, object], name: str, on_fault: OnFault) -> Callable[P, None]:
    """`callback` for the loop's timers and queues: an exception out of it is logged, then `on_fault(error)` is called."""

    def call(*args: P.args, **more: P.kwargs) -> None:
        try:
            callback(*args, **more)
        except Exception as error:
            tell_fault("callback_failed", error, on_fault, callback=name)

    return call


def tell_fault(event: str, error: Exception, on_fault: OnFault | None = None, **facts: object) -> None:
    """Logs an exception that nobody foresaw, with its traceback, then calls `on_fault(error)`."""
    what = f"{type(error).__name__}: {error}"
    structlog.get_logger().error(event, **facts, what=what, note=_NOTE, exc_info=error)
    if on_fault is not None:
        on_fault(error)


def watch_process(loop: asyncio.AbstractEventLoop, on_thread_fault: OnFault) -> Callable[[], None]:
    """What no other net has caught: callbacks of the loop are logged; of a thread that ended `on_thread_fault` is told too,
    on the loop. Returns what takes that back."""

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
