"""The twin of dump_client.c for machines without a C compiler: same arguments, same input, same output, more CPU."""

import json
import os
import selectors
import socket
import sys
import time

_STEP = 256 << 10


def _read_exactly(count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = os.read(0, count - len(data))
        if not piece:
            raise SystemExit("dump_client: standard input ended")
        data += piece
    return data


def _send_commands(links: list[socket.socket]) -> float:
    packets = [_read_exactly(int.from_bytes(_read_exactly(2), "little")) for _ in links]
    start = time.monotonic()
    for link, packet in zip(links, packets, strict=True):
        link.sendall(packet)
    return start


class _Walk:
    """Finds packets in bytes that come in any pieces."""

    def __init__(self) -> None:
        self.kept = b""
        self.packets = 0
        self.bytes = 0
        self.ended = 0

    def feed(self, data: bytes) -> int:
        """How many Xid events ended in `data`."""
        self.kept += data
        at = xids = 0
        while at + 10 <= len(self.kept) or (at + 5 <= len(self.kept) and self.kept[at + 4] in (0xFE, 0xFF)):
            size = int.from_bytes(self.kept[at : at + 3], "little")
            if self.kept[at + 4] == 0xFF or (self.kept[at + 4] == 0xFE and size < 9):
                self.ended = self.kept[at + 4]
                break
            if at + 4 + size > len(self.kept):
                break
            xids += self.kept[at + 9] == 16
            self.packets += 1
            self.bytes += 4 + size
            at += 4 + size
        self.kept = self.kept[at:]
        return xids


def _count(link: socket.socket) -> dict[str, object]:
    start = _send_commands([link])
    walk = _Walk()
    while not walk.ended:
        data = link.recv(_STEP)
        if not data:
            raise SystemExit("dump_client: the stream broke off")
        walk.feed(data)
    if walk.ended == 0xFF:
        raise SystemExit("dump_client: the server answered with an error")
    return {"bytes": walk.bytes, "packets": walk.packets, "seconds": time.monotonic() - start}


def _drain(wanted: int, links: list[socket.socket]) -> dict[str, object]:
    start = _send_commands(links)
    had = dict.fromkeys(links, 0)
    buffer = bytearray(_STEP)
    selector = selectors.DefaultSelector()
    for link in links:
        selector.register(link, selectors.EVENT_READ)
    if not wanted:
        selector.register(0, selectors.EVENT_READ)
    left = len(links)
    while left:
        for key, _ in selector.select():
            if key.fileobj == 0:
                left = 0
                break
            ready = key.fileobj
            assert isinstance(ready, socket.socket)
            got = ready.recv_into(buffer)
            if not got:
                raise SystemExit("dump_client: a stream broke off")
            had[ready] += got
            if wanted and had[ready] >= wanted:
                selector.unregister(ready)
                left -= 1
    return {
        "bytes": sum(had.values()),
        "least": min(had.values()),
        "seconds": time.monotonic() - start,
        "cpu": time.process_time(),
    }


def _commits(wanted: int, links: list[socket.socket]) -> dict[str, object]:
    times: list[list[float]] = [[], []]
    walks = [_Walk(), _Walk()]
    _send_commands(links)
    selector = selectors.DefaultSelector()
    for number, link in enumerate(links):
        selector.register(link, selectors.EVENT_READ, number)
    print("ready", file=sys.stderr, flush=True)
    while min(map(len, times)) < wanted:
        ready = selector.select(20)
        if not ready:
            raise SystemExit("dump_client: no more commits came")
        for key, _ in ready:
            assert isinstance(key.fileobj, socket.socket)
            data = key.fileobj.recv(_STEP)
            moment = time.monotonic()
            if not data:
                raise SystemExit("dump_client: a stream broke off")
            times[key.data] += [moment] * walks[key.data].feed(data)
    return {"first": times[0][:wanted], "second": times[1][:wanted]}


def main() -> None:
    """Does what the command line says."""
    command, *rest = sys.argv[1:]
    if command == "count":
        result = _count(socket.socket(fileno=int(rest[0])))
    else:
        links = [socket.socket(fileno=int(number)) for number in rest[1:]]
        result = {"drain": _drain, "commits": _commits}[command](int(rest[0]), links)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
