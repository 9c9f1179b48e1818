"""Fuzzes the kernel: broken and odd streams through both builds, in any cuts, in and out again.

    python -m tests.fuzz_kernel [--seconds N] [--seed S]

A case is a stream of recorded or made events with a few things changed, its checksums often made right again, so that what
is behind the checksum is reached. What must hold: a documented status and nothing else; the same for both builds and any
cuts; positions, boundaries and counts that fit together; what comes out framed and taken in again is the same. A case
that breaks one of these is written to tests/corpus/broken/, where the tests replay it.
"""

import base64
import ctypes
import itertools
import json
import os
import random
import struct
import sys
import zlib
from array import array
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from protocol.kernel import codes
from tests.support.event_stream import EventStream, artificial_rotate, heartbeat, packetise, query_body, walk
from tests.support.fuzzing import broken_cases, fuzz_command
from tests.support.kernel_builds import KernelBuild, builds
from tests.support.kernel_columns import changed_rows, event_rows, statement_rows, transaction_rows

CORPUS: Final = Path(__file__).resolve().parent / "corpus"
TYPES: Final = [*range(44), *range(159, 174), 255]
TEXTS: Final = [
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "ROLLBACK TO `s`",
    "ROLLBACK /*",
    "XA START 'a'",
    "XA COMMIT 'a'",
    "xa ",
    "B",
    "",
]


class Broken(Exception):
    """What must hold does not."""


@dataclass(frozen=True)
class Case:
    """One input: packets or file bytes as hexadecimal text, where the reads end, and how the kernel is set."""

    data: str
    cuts: list[int]
    packets: bool
    stamp: bool
    prefix: int
    start: int
    announced: bool


def save(case: Case, path: Path) -> None:
    """Writes the case to a file, its data packed."""
    packed = base64.b64encode(zlib.compress(bytes.fromhex(case.data), 9)).decode()
    path.write_text(json.dumps(asdict(case) | {"data": packed}) + "\n")


def load(path: Path) -> Case:
    """The case that `save` wrote."""
    values = json.loads(path.read_text())
    return Case(**values | {"data": zlib.decompress(base64.b64decode(values["data"])).hex()})


def exact_buffer(data: bytes) -> Any:
    """A buffer with nothing behind its last byte, so that an address sanitizer sees a read beyond it."""
    return (ctypes.c_ubyte * len(data)).from_buffer_copy(data)


make_buffer: Any = exact_buffer if os.environ.get("BINLOG_RELAY_FUZZ_EXACT") else bytearray


def recorded_streams() -> list[list[bytes]]:
    """The events of each recording."""
    result = []
    for path in sorted(CORPUS.glob("recorded/*.binlog")):
        data = path.read_bytes()
        at, events = 4, []
        while at < len(data):
            (length,) = struct.unpack_from("<I", data, at + 9)
            events.append(data[at : at + length])
            at += length
        result.append(events)
    return result


def made_stream(noise: random.Random) -> list[bytes]:
    """Events of random types with random bodies."""
    version = noise.choice(["5.6.24-log", "9.7.4", "10.11.19-MariaDB", "5.1.43", "8.0.40"])
    stream = EventStream(checksum=noise.random() < 0.7, version=version)
    for _ in range(noise.randrange(30)):
        if noise.random() < 0.4:
            stream.add(2, query_body(noise.choice(TEXTS), status=bytes(noise.choice([0, 5, 60]))))
        else:
            size = noise.choice([0, 4, 8, 13, 24, 24, 40, 300])
            flags = noise.choice([0, 0, 0, 0x80, 0x20, noise.randrange(8) << 10])
            stream.add(noise.choice(TYPES), noise.randbytes(size), flags=flags)
    if noise.random() < 0.05:
        stream.add(noise.choice([2, 30, 40, 4]), query_body("x" * noise.choice([262100, 262144, 300000])))
        stream.query("COMMIT")
    return stream.events


def damage(noise: random.Random, events: list[bytes]) -> list[bytes]:
    """The events with up to three things changed."""
    events = list(events)
    for _ in range(noise.choice([0, 0, 1, 1, 2, 3])):
        which = noise.randrange(len(events))
        event = bytearray(events[which] or bytes(19))
        what = noise.randrange(7)
        if what == 0 and len(event) > 19:
            event[noise.randrange(19, len(event))] = noise.choice([0, 1, 255, noise.randrange(256)])
        elif what == 1:
            event[noise.randrange(min(19, len(event)))] = noise.choice([0, 1, 255, noise.randrange(256)])
        elif what == 2:
            event = event[: noise.randrange(len(event) + 1)]
        elif what == 3:
            event += noise.randbytes(noise.randrange(1, 30))
        elif what == 4 and len(event) > 4:
            event[4] = noise.choice(TYPES)
        elif what == 5:
            events.insert(which, events[noise.randrange(len(events))])
        else:
            del events[which]
            if not events:
                return [bytes(event)]
            continue
        if noise.random() < 0.7 and len(event) >= 23:
            if noise.random() < 0.7:
                struct.pack_into("<I", event, 9, len(event))
            if noise.random() < 0.8:
                struct.pack_into("<I", event, 13, 0)
            event[-4:] = struct.pack("<I", zlib.crc32(event[:-4]))
        if what != 5:
            events[which] = bytes(event)
    return events


def make_case(noise: random.Random, recorded: list[list[bytes]]) -> Case:
    """A case drawn from `noise`."""
    events = noise.choice(recorded) if noise.random() < 0.4 else made_stream(noise)
    events = damage(noise, events)
    packets = noise.random() < 0.6
    announced = noise.random() < 0.8
    prefix, start = 1, 4
    if packets:
        prefix = noise.choice([1, 1, 1, 3])
        if noise.random() < 0.7:
            events.insert(0, artificial_rotate(checksum=announced))
        if noise.random() < 0.3:
            events.insert(noise.randrange(len(events) + 1), heartbeat(noise.choice([0, 4, 500])))
        if noise.random() < 0.1:
            start = noise.choice([1000, 2**32 - 50, 2**33])
        data = bytearray(packetise(events, b"\0" + b"\xef\0"[: prefix - 1]))
    else:
        data = bytearray(b"".join(events))
    if noise.random() < 0.15 and data:
        data[noise.randrange(len(data))] = noise.randrange(256)
    if noise.random() < 0.1:
        del data[noise.randrange(len(data) + 1) :]
    cuts = sorted(noise.randrange(1, max(len(data), 2)) for _ in range(noise.choice([0, 1, 3, 10])))
    return Case(data.hex(), cuts, packets, noise.random() < 0.7, prefix, start, announced)


def check(case: Case) -> None:
    """Raises Broken if one of the things that must hold does not for this case."""
    data = bytes.fromhex(case.data)

    def run(build: KernelBuild, cuts: list[int]) -> Any:
        return walk(
            build,
            data,
            cuts,
            packets=case.packets,
            stamp=case.stamp,
            prefix=case.prefix,
            start=case.start,
            announced=case.announced,
            make_buffer=make_buffer,
        )

    first = builds()[0]
    result = run(first, case.cuts)
    for build, cuts in itertools.product(builds(), ([], case.cuts)):
        other = run(build, cuts)
        faults = (codes.BAD_CRC, codes.BAD_POSITION)
        if result.status in faults and other.status in faults and len(data) > codes.MAX_WHOLE:
            # Of a big event, the part before the cut was counted and handed on before its checksum came, and that it
            # starts a transaction was known; one with two faults is named after the one that is met first.
            if other.position != result.position:
                raise Broken(f"{build.name}, cuts {cuts}: at {other.position}, not {result.position}")
            if other.status == result.status and other.error_text != result.error_text:
                raise Broken(f"{build.name}, cuts {cuts}: {other.error_text!r}, not {result.error_text!r}")
            # The one boundary may only be the start of the bad event itself, where the other is what was known before it.
            if other.boundary != result.boundary and max(other.boundary, result.boundary) != result.position:
                raise Broken(f"{build.name}, cuts {cuts}: boundary {other.boundary}, not {result.boundary}")
        elif other != result:
            different = [n for n, v in asdict(result).items() if asdict(other)[n] != v]
            raise Broken(f"{build.name}, cuts {cuts}: other {different}: {other.error_text!r}, {result.error_text!r}")
    if not result.rotates and not (case.start <= result.boundary <= result.position):
        raise Broken(f"boundary {result.boundary} outside {case.start}..{result.position}")
    if result.status >= 16 and result.status not in first.ingest.STATUS_NAMES:
        raise Broken(f"status {result.status} has no name")
    offsets = [row[0] for row in struct.iter_unpack("<QQII", result.entries)]
    if not result.rotates and offsets != sorted(set(offsets)):
        raise Broken(f"index entries out of order: {offsets}")
    check_table(data, case)
    check_frames(case, result)
    if not case.packets:
        check_columns(data, case)


def check_table(data: bytes, case: Case) -> None:
    """Tolerant reading ends, and is the same in both builds."""
    results = []
    for build in builds():
        ingest = build.ingest.Ingest(packets=case.packets, prefix=case.prefix)
        table = array("q", bytes(8 * 8 * 3))
        ingest.set_table(table, True)
        buffer = make_buffer(data)
        rows: list[tuple[int, ...]] = []
        used = 0
        for _ in range(len(data) + 10):
            status = ingest.feed(buffer, used, len(buffer))
            rows += [tuple(table[i * 8 : i * 8 + 8]) for i in range(ingest.table_rows)]
            ingest.take_entries()
            if status not in (1, 4, 5):
                break
            used = ingest.consumed
        else:
            raise Broken(f"{build.name}: tolerant reading does not end")
        results.append((status, rows, ingest.position, ingest.error_text, ingest.position_jumps))
    if results.count(results[0]) != len(results):
        raise Broken("tolerant reading differs between the builds")


def check_columns(data: bytes, case: Case) -> None:
    """Columns of a file are the same from both builds, for any cuts and batches."""
    results = []
    for build, cuts in itertools.product(builds(), ([], case.cuts)):
        file = b"\xfebin" + data
        capacity = 3 if cuts else 1000
        events = event_rows(build, file, capacity=capacity, cuts=cuts, make_buffer=make_buffer)
        transactions = transaction_rows(build, file, capacity=capacity, cuts=cuts, make_buffer=make_buffer)
        changed = changed_rows(build, file, capacity=capacity, cuts=cuts, make_buffer=make_buffer)
        statements, maps = (
            statement_rows(build, file, maps=maps, capacity=capacity, cuts=cuts, make_buffer=make_buffer)
            for maps in (False, True)
        )
        results.append((events.rows, transactions.rows, changed.rows, statements.rows, maps.rows))
    if results.count(results[0]) != len(results):
        raise Broken("columns differ")
    for row in results[0][2]:
        for image in (row["before"], row["after"]):
            if image is not None and not isinstance(json.loads(image), dict):
                raise Broken(f"an image that is no object: {image!r}")


def check_frames(case: Case, result: Any) -> None:
    """What was produced can be framed, in pieces, the same by both builds; kept, it is what it was."""
    checksum = max(result.checksum, 0)
    for mode in (0, 1, 2):
        outputs = []
        for build, cut in itertools.product(builds(), (len(result.produced), len(result.produced) // 2)):
            framer = build.frame.Framer(mode)
            framer.begin_file(checksum)
            out, held = bytearray(), b""
            for piece in (result.produced[:cut], result.produced[cut:]):
                source = make_buffer(held + piece)
                target = make_buffer(bytes(build.frame.required_size(len(source))))
                size = framer.frame(source, 0, len(source), target)
                out += bytes(target[:size])
                held = bytes(source[framer.consumed :])
            outputs.append((bytes(out), held))
        if outputs.count(outputs[0]) != len(outputs):
            raise Broken(f"framing in mode {mode} differs")


def run(seed: int, cases: int | None = None, seconds: float | None = None) -> Iterator[tuple[int, Case, str]]:
    """Tries cases until either limit; yields number, case and reason of each that breaks."""
    recorded = recorded_streams()
    return broken_cases(seed, lambda dice: make_case(dice, recorded), check, cases=cases, seconds=seconds)


if __name__ == "__main__":
    sys.exit(
        fuzz_command(
            "Fuzz the kernel.",
            lambda seed, seconds: run(seed, seconds=seconds),
            save,
            CORPUS / "broken",
            f", builds: {', '.join(build.name for build in builds())}",
        )
    )
