"""Bytes in and out of the kernel: any cuts give the same, and the way out undoes the way in."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from protocol.kernel import codes
from tests.support.event_stream import EventStream, artificial_rotate, heartbeat, packetise, query_body, walk
from tests.support.kernel_builds import KernelBuild, builds

BUILDS = pytest.mark.parametrize("build", builds(), ids=lambda build: str(build.name))
LIMITS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
bodies = st.one_of(
    st.binary(max_size=60).map(lambda data: (99, data)),
    st.integers(0, 3000).map(lambda size: (2, query_body("x" * size))),
    st.sampled_from([(2, query_body("BEGIN")), (16, bytes(8)), (19, bytes(20))]),
    st.sampled_from([262100, 262144, 270000]).map(lambda size: (2, query_body("y" * size))),
)
streams = st.tuples(st.lists(bodies, max_size=12), st.booleans(), st.integers(0, 7))
cuts_in = st.lists(st.floats(0, 1), max_size=10)


def stream_of(drawn: tuple[list[tuple[int, bytes]], bool, int]) -> EventStream:
    steps, checksum, mark = drawn
    stream = EventStream(checksum=checksum)
    for number, (kind, body) in enumerate(steps):
        stream.add(kind, body, flags=(mark << 10) if number % 5 == 4 else 0)
    return stream


def framed(build: KernelBuild, data: bytes, cuts: list[int], mode: int, checksum: bool) -> bytes:
    framer = build.frame.Framer(mode)
    framer.begin_file(int(checksum))
    out, held, at = bytearray(), b"", 0
    for cut in [*sorted(cuts), len(data)]:
        source = held + data[at:cut]
        at = cut
        target = bytearray(build.frame.required_size(len(source)))
        size = framer.frame(source, 0, len(source), target)
        out += target[:size]
        held = source[framer.consumed :]
    assert held == b""
    return bytes(out)


@BUILDS
@LIMITS
@given(drawn=streams, fractions=cuts_in, packets=st.booleans())
def test_any_cuts_give_what_one_feed_gives(
    build: KernelBuild, drawn: tuple[list[tuple[int, bytes]], bool, int], fractions: list[float], packets: bool
) -> None:
    stream = stream_of(drawn)
    if packets:
        events = [
            artificial_rotate(checksum=stream.checksum),
            *stream.events,
            heartbeat(stream.offset, stream.checksum),
        ]
        data = packetise(events)
    else:
        data = stream.data
    cuts = [int(fraction * len(data)) for fraction in fractions]
    whole = walk(builds()[-1], data, packets=packets, announced=stream.checksum)
    got = walk(build, data, cuts, packets=packets, announced=stream.checksum)
    # the bytes apart, for a message that can be read
    same_bytes = got.produced == whole.produced
    got.produced = whole.produced = b""
    assert (got, same_bytes, got.status, got.position) == (whole, True, 0, stream.offset)


@BUILDS
@LIMITS
@given(drawn=streams, fractions=cuts_in)
def test_what_is_framed_and_taken_in_again_is_what_it_was(
    build: KernelBuild, drawn: tuple[list[tuple[int, bytes]], bool, int], fractions: list[float]
) -> None:
    stream = stream_of(drawn)
    stored = walk(build, stream.data, packets=False).produced
    cuts = [int(fraction * len(stored)) for fraction in fractions]
    packets = framed(build, stored, cuts, codes.KEEP, stream.checksum)
    again = walk(build, packets, [int(fraction * len(packets)) for fraction in fractions])
    assert (again.status, again.produced == stored) == (0, True)


@BUILDS
@LIMITS
@given(drawn=streams, fractions=cuts_in)
def test_stripping_undoes_stamping(
    build: KernelBuild, drawn: tuple[list[tuple[int, bytes]], bool, int], fractions: list[float]
) -> None:
    steps, checksum, _mark = drawn
    stream = stream_of((steps, checksum, 0))
    stored = walk(build, stream.data, packets=False).produced
    cuts = [int(fraction * len(stored)) for fraction in fractions]
    stripped = framed(build, stored, cuts, codes.STRIP, checksum)
    assert (stripped == packetise(stream.events), stored != stream.data) == (True, True)
