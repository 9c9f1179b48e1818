"""An endless flood of unauthenticated connections, which never log in, from a separate process.

    python -m tests.support.stranger_flood PORT RATE KIND ADDRESS...

There are so many a second, by turns from these addresses, kept open until the server closes them. KIND is `silent`, `talking` (the
first byte of a login each, and 249 at once at the beginning), or `mixed`.
"""

import contextlib
import resource
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
_AT_ONCE: Final = 249
_BEGINS_S: Final = 0.5
_READY: Final = "flooding"


@contextlib.contextmanager
def stranger_flood(port: int, rate: float, kind: str, addresses: Sequence[str]) -> Iterator[None]:
    """Flood while the block runs, which begins when the first connections exist."""
    words = [sys.executable, "-m", "tests.support.stranger_flood", str(port), str(rate), kind, *addresses]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as flood:
        try:
            assert flood.stdout is not None
            assert flood.stdout.readline().strip() == _READY
            yield
            assert flood.poll() is None, "the flood has ended by itself"
        finally:
            flood.kill()


class _Flood:
    def __init__(self, port: int, kind: str, addresses: Sequence[str]) -> None:
        self._port = port
        self._kind = kind
        self._addresses = addresses
        self._selector = selectors.DefaultSelector()
        self._made = 0

    def connect(self) -> None:
        link = socket.socket()
        link.setblocking(False)
        try:
            link.bind((self._addresses[self._made % len(self._addresses)], 0))
            link.connect_ex(("127.0.0.1", self._port))
        except OSError:
            link.close()
            return
        talks = self._kind == "talking" or (self._kind == "mixed" and self._made % 2 == 0)
        self._made += 1
        self._selector.register(link, selectors.EVENT_READ, talks)

    def go_on(self, longest_s: float) -> None:
        for key, _ready in self._selector.select(longest_s):
            link = key.fileobj
            assert isinstance(link, socket.socket)
            try:
                came = link.recv(4096)
                if came and key.data:
                    link.send(b"\x40")
            except OSError:
                came = b""
            if not came:
                self._selector.unregister(link)
                link.close()


def main() -> None:
    port, rate, kind, addresses = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3], sys.argv[4:]
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    flood = _Flood(port, kind, addresses)
    for _ in range(0 if kind == "silent" else _AT_ONCE):
        flood.connect()
    began, made, is_ready = time.monotonic(), 0, False
    while True:
        passed_s = time.monotonic() - began
        due = int(passed_s * rate) - made
        for _ in range(min(_AT_ONCE, due)):
            flood.connect()
        # A shortfall is not made up for: the rate stays the rate.
        made += max(0, due)
        flood.go_on(0.002)
        if not is_ready and passed_s > _BEGINS_S:
            is_ready = True
            print(_READY, flush=True)


if __name__ == "__main__":
    main()
