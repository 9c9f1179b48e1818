"""The upstream side's notes on its connection."""

from relay.upstream.source.source_errors import FailureKind, UpstreamError
from relay.upstream.source.source_status import Phase, SourceLink

ERROR = UpstreamError(FailureKind.NETWORK, "the source went away", name="lost")


def test_what_was_wrong_stays_until_the_source_has_answered() -> None:
    link = SourceLink()
    link.connecting()
    link.lost(ERROR, final=False)
    link.connecting()
    link.attached()
    assert (link.phase, link.last_error, link.retries) == (Phase.STREAMING, ERROR, 1)
    link.answered()
    assert (link.phase, link.last_error, link.retries) == (Phase.STREAMING, None, 0)


def test_heartbeats_of_the_stream_that_runs_are_counted_apart() -> None:
    link = SourceLink()
    link.count_heartbeats(lambda: 3)
    link.stopped()
    link.attached()
    link.count_heartbeats(lambda: 2)
    assert (link.received_heartbeats, link.stream_heartbeats) == (5, 2)
