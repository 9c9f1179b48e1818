"""Rand: the seeds of RAND() for the next statement."""

from dataclasses import dataclass

from protocol.binlog.fields import Fields


@dataclass(frozen=True, slots=True)
class Rand:
    """The two seeds."""

    seed1: int
    seed2: int


def decode_rand(body: bytes) -> Rand:
    """Decode a Rand event: seed1 u64 | seed2 u64. Trailing bytes are ignored."""
    fields = Fields(body)
    return Rand(fields.u64(), fields.u64())
