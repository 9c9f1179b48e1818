"""The totals of what came from the source."""

from collections import Counter
from dataclasses import dataclass, field

from relay.process.duration_histogram import COMPUTING_BOUNDS_S, DurationHistogram


@dataclass(slots=True)
class StreamTally:
    """The totals since the relay's start, of all streams, whichever source they came from."""

    bytes_received: int = 0
    """The bytes of binlogs, as they are archived."""
    events: int = 0
    transactions: int = 0
    attempts: int = 0
    """The number of connection attempts."""
    streams: int = 0
    """The number of streams that the source started."""
    losses: Counter[str] = field(default_factory=Counter)
    """The ends of attempts and streams, by the kind of failure."""
    last_heard_at: float = 0.0
    """The time when bytes last came from the source, in Unix seconds; 0 means never."""
    kernel_times: DurationHistogram = field(default_factory=lambda: DurationHistogram(COMPUTING_BOUNDS_S))
    """The time that the compiled part took for each portion of input."""
