"""What ends the acknowledgements to a source ends its stream: its clients would wait for what never comes."""

import structlog.testing

from protocol.position import Position
from relay.upstream.source.source_status import SourceLink
from relay.upstream.stream.acknowledger import Acknowledger

FILE = "mysql-bin.000001"


class Synced:
    """An archive that says when something was synced."""

    def __init__(self) -> None:
        self.synced: Position | None = None
        self.callbacks: list[object] = []

    def sync_up_to(self, file: str, offset: int) -> None:
        """Nothing to do."""

    def watch_sync(self, callback: object) -> None:
        self.callbacks.append(callback)

    def unwatch_sync(self, callback: object) -> None:
        self.callbacks.remove(callback)

    def sync(self, offset: int) -> None:
        self.synced = Position(FILE, offset)
        for callback in self.callbacks:
            callback()  # type: ignore[operator]


def test_a_fault_is_told_and_ends_the_stream_but_nothing_else_that_hears_of_the_sync() -> None:
    archive, ended, others = Synced(), [], []

    def send(_packet: bytes) -> None:
        raise ZeroDivisionError("a bug")

    acknowledger = Acknowledger(archive, send, SourceLink(), ended.append)  # type: ignore[arg-type, var-annotated]
    archive.callbacks.append(lambda: others.append(True))
    acknowledger.want(FILE, 500)
    with structlog.testing.capture_logs() as logs:
        archive.sync(500)
    assert others == [True]
    (line,) = logs
    assert (line["event"], line["log_level"]) == ("callback_failed", "error")
    assert ended == [line["exc_info"]] and isinstance(ended[0], ZeroDivisionError)
    acknowledger.close()
    assert len(archive.callbacks) == 1
