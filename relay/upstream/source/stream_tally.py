"""What came from the source, counted."""

from collections import Counter
from dataclasses import dataclass, field

from relay.process.duration_histogram import COMPUTING_BOUNDS_S, DurationHistogram


@dataclass(slots=True)
class StreamTally:
    """Since the relay's start; of all streams, whichever source they came from."""

    bytes_received: int = 0
    """Of binlogs, as they are archived."""
    events: int = 0
    transactions: int = 0
    attempts: int = 0
    """How often the relay began to connect."""
    streams: int = 0
    """How often the source gave it a stream."""
    losses: Counter[str] = field(default_factory=Counter)
    """Ends of attempts and streams, by the kind of failure."""
    last_heard_at: float = 0.0
    """When bytes came from the source last, in Unix seconds; 0: never."""
    kernel_times: DurationHistogram = field(default_factory=lambda: DurationHistogram(COMPUTING_BOUNDS_S))
    """How long the compiled part took for what came at once."""
