"""Events that are small and become large, and statements that are long: a relay with views of them has its loop and its memory."""

import struct
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.free_port import free_port
from tests.support.relay_process import REPLICA_USER, RelayProcess

CORPUS: Final = Path(__file__).resolve().parents[1] / "corpus" / "recorded"
MOST_RSS_MB: Final = 512
"""Of which a hundred are the relay's own."""
LONGEST_PING_S: Final = 1.0
"""By the clock, beside other tests; it was 3.2 s."""
Event = tuple[int, bytes, bytes]
MEGABYTE: Final = 1 << 20


def events(name: str) -> list[Event]:
    """(type, flags, body) of a recorded file whose events have checksums."""
    data, at, found = (CORPUS / name).read_bytes(), 4, []
    while at + 19 <= len(data):
        size = int.from_bytes(data[at + 9 : at + 13], "little")
        found.append((data[at + 4], data[at + 17 : at + 19], data[at + 19 : at + size - 4]))
        at += size
    return found


def binlog(path: Path, made: Sequence[Event]) -> None:
    data = bytearray(b"\xfebin")
    for kind, flags, body in made:
        size = 19 + len(body) + 4
        event = struct.pack("<IBIII", 1_795_204_928, kind, 1, size, (len(data) + size) & 0xFFFFFFFF) + flags + body
        data += event + zlib.crc32(event).to_bytes(4, "little")
    path.write_bytes(data)


def query(text: bytes) -> Event:
    return 2, b"\0\0", struct.pack("<IIBHH", 8, 0, 1, 0, 0) + b"d\0" + text


def packed_query(size: int, unit: bytes) -> Event:
    """Packed once and repeated: behind a full flush nothing is packed by what was before. Its checksum is wrong, at its end."""
    pack = zlib.compressobj(1, wbits=-15)
    piece = pack.compress(unit * (MEGABYTE // len(unit))) + pack.flush(zlib.Z_FULL_FLUSH)
    stream = b"\x78\x01" + piece * (size // MEGABYTE) + pack.flush() + bytes(4)
    body = struct.pack("<IIBHH", 8, 0, 1, 0, 0) + b"d\0\x84" + size.to_bytes(4, "big") + stream
    return 165, b"\0\0", body


def of_mariadb(*statements: Event) -> list[Event]:
    recorded = events("mariadb.binlog")
    made = [next(one for one in recorded if one[0] == 15), *[one for one in recorded if one[0] == 163][:1]]
    for number, statement in enumerate(statements):
        made += [(162, b"\0\0", struct.pack("<QIB", 1_000_001 + number, 0, 1) + bytes(6)), statement]
    return made


def of_mysql(*texts: bytes) -> list[Event]:
    first = next(one for one in events("mysql56.binlog") if one[0] == 15)
    return [first, *map(query, texts), query(b"INSERT INTO d.t VALUES (1)")]


def payload() -> list[Event]:
    zstandard = pytest.importorskip("zstandard")
    recorded = events("mysql97-gtid.binlog")
    pack, size = zstandard.ZstdCompressor(level=3).compressobj(), 3000 * MEGABYTE
    plain = bytes(MEGABYTE)
    blob = b"".join(pack.compress(plain) for _ in range(300)) + pack.flush()
    head = b"\x02\x01\x00\x03\x09\xfe" + size.to_bytes(8, "little")
    head += b"\x01\x09\xfe" + len(blob).to_bytes(8, "little") + b"\0"
    found = {kind: one for one in reversed(recorded) for kind in [one[0]]}
    return [found[15], found.get(33) or found.get(34) or found[42], (40, b"\0\0", head + blob)]


WRITESET: Final = {"dependencies": "writeset", "engines": "innodb"}
BOMBS: Final[dict[str, tuple[Callable[[], list[Event]], dict[str, Any], str | None]]] = {
    "a packed statement of 300 MB": (lambda: of_mariadb(packed_query(300 * MEGABYTE, b"a")), {}, "transaction_too_large"),
    "eight packed statements of 120 MB": (
        lambda: of_mariadb(*[packed_query(120 * MEGABYTE, b"a")] * 8), {}, "transaction_too_large"
    ),
    "packed quotes of 15 MB": (lambda: of_mariadb(packed_query(15 * MEGABYTE, b"''")), {}, "*"),
    "a payload of 3 GB": (payload, {"target": "mysql-5.6", "gtids": "keep"}, "*"),
    "clauses, quotes, comments and digits of 2.5 to 12 MB": (
        lambda: of_mysql(
            b"ALTER TABLE d.t " + b"ADD x int, " * 400_000 + b"ADD y int",
            b"CREATE TABLE d.t (a int COMMENT '" + b"''" * 2_500_000 + b"')",
            b"CREATE TABLE d.t (a int) " + b"-- x\n" * 500_000,
            b"CREATE TABLE d.t (a int DEFAULT " + b"1" * 12_000_000,
            b"/*" + b"*" * 12_000_000,
        ),
        WRITESET,
        None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_what_becomes_large_costs_neither_the_loop_nor_memory(tmp_path: Path, name: str) -> None:
    make, view, stop = BOMBS[name]
    source = tmp_path / "source"
    source.mkdir()
    binlog(source / "mysql-bin.000001", make())
    size = (source / "mysql-bin.000001").stat().st_size
    relay = RelayProcess(tmp_path / "relay", source, port=free_port(), watch_loop=True)
    relay.add_view(**{"name": "v", "target": "mysql-9.7", **view})
    with relay:
        relay.wait_archived("mysql-bin.000001", size)
        peak, longest, until, seen_at = 0, 0.0, time.monotonic() + 60, None
        while time.monotonic() < until:
            begun = time.monotonic()
            relay.sql("SELECT 1", REPLICA_USER)
            longest = max(longest, time.monotonic() - begun)
            time.sleep(0.05)
            peak = max(peak, peak_mb(relay.pid))
            stopped = relay.logged("view_stopped")
            if seen_at is None and (stopped or (stop is None and relay.logged("view_file_begins"))):
                seen_at = time.monotonic()
            if seen_at is not None and time.monotonic() > seen_at + 2:
                break
        relay.loop_holds().check()
        assert peak < MOST_RSS_MB
        assert longest < LONGEST_PING_S
        if stop is not None:
            assert stopped and stop in ("*", stopped[0]["reason"]), relay.log_tail()
        assert not relay.logged("callback_failed")
        assert not relay.logged("task_failed")


def peak_mb(pid: int) -> int:
    """The most that the process has had in memory."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) >> 10 for line in status.splitlines() if line.startswith("VmHWM"))
