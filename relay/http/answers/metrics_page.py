"""/metrics: a snapshot in the format of Prometheus."""

import math
import platform
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from protocol.kernel import ingest
from relay.http.answers.applied_answers import applied_samples
from relay.http.answers.frame_answers import frame_samples
from relay.http.answers.metric_families import FAMILIES, MetricFamily
from relay.http.answers.mirror_answers import mirror_samples
from relay.http.answers.not_ready import reasons_not_ready
from relay.http.answers.retention_answers import retention_samples
from relay.http.answers.tier_answers import tier_samples
from relay.http.facts.relay_snapshot import RelaySnapshot
from relay.process.duration_histogram import DurationHistogram
from relay.upstream.source.source_errors import FailureKind

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
# A counter that appears with its first count shows no increase: those that alerts query exist from the beginning.
_LOSSES: Final = tuple(kind.value for kind in FailureKind)
_DUMP_ERRORS: Final = ("1236", "1105")
_TURNED_AWAY: Final = ("too_many", "blocked", "shutdown", "other")
_HTTP_REFUSALS: Final = ("too_many_connections", "timeout", "token", "body", "host")
_ORDERED: Final = "purged"
Samples = Iterable[tuple[tuple[str, ...], float]]


class MetricsPage:
    """Renders the page in any thread. version: the relay's. histograms: by the names of their families, live."""

    def __init__(self, version: str, ready_behind_s: float, histograms: dict[str, DurationHistogram]) -> None:
        self._version = version
        self._ready_behind_s = ready_behind_s
        self._histograms = histograms
        self._processes = CollectorRegistry()
        ProcessCollector(registry=self._processes)

    def render(self, shot: RelaySnapshot, http_connections: int) -> bytes:
        """Return the whole page. A hundred replicas take some ten milliseconds: for a thread."""
        values = dict(self._values(shot, http_connections))
        registry = CollectorRegistry()
        registry.register(_Given(self._metrics(values)))
        return generate_latest(registry) + generate_latest(self._processes)

    def _metrics(self, values: dict[str, Samples]) -> list[Metric]:
        return [self._metric(family, values) for family in FAMILIES]

    def _metric(self, family: MetricFamily, values: dict[str, Samples]) -> Metric:
        name, labels = family.full_name, family.labels
        if family.kind == "histogram":
            times = self._histograms[family.name]
            buckets = [("+Inf" if math.isinf(end) else repr(end), count) for end, count in times.cumulative()]
            return HistogramMetricFamily(name, family.help, buckets=buckets, sum_value=times.sum_s)
        metric: GaugeMetricFamily | CounterMetricFamily
        make = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
        metric = make(name, family.help, labels=labels)
        for label_values, value in values[family.name]:
            metric.add_metric(label_values, value)
        return metric

    def _values(self, shot: RelaySnapshot, http_connections: int) -> Iterator[tuple[str, Samples]]:
        yield from _source_values(shot)
        yield from _archive_values(shot)
        yield from retention_samples(shot.retention, [one.name for one in shot.views])
        yield from tier_samples(shot.tiers)
        yield from mirror_samples(shot.mirror)
        yield from frame_samples(shot.frames)
        yield from _view_values(shot)
        yield from _replica_values(shot)
        yield from applied_samples(shot)
        counters = shot.counters
        kernel = "compiled" if (ingest.__file__ or "").endswith(".so") else "python"
        yield "build_info", [((self._version, platform.python_version(), kernel), 1)]
        yield "ready", _one(not reasons_not_ready(shot, self._ready_behind_s))
        yield "start_time_seconds", _one(shot.started_at)
        yield "certificate_expiry_timestamp_seconds", _by(shot.slow.certificates.items())
        yield "facts_age_seconds", _one(time.time() - shot.slow.asked_at) if shot.slow.asked_at else ()
        yield "memory_budget_bytes", _one(shot.memory.limit_bytes)
        yield "memory_held_bytes", _one(shot.memory.used_bytes)
        yield "memory_connections_ended_total", _one(shot.memory.ended)
        yield "http_connections", _one(http_connections)
        yield (
            "http_requests_total",
            [((path, str(code)), count) for (path, code), count in counters.http_requests.items()],
        )
        yield "http_refusals_total", _by(_from_zero(counters.http_refusals, _HTTP_REFUSALS))


class _Given(Collector):
    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def _source_values(shot: RelaySnapshot) -> Iterator[tuple[str, Samples]]:
    status, counters = shot.status, shot.counters
    yield "source_connected", _one(status.io_running == "Yes")
    yield "source_given_up", _one(status.io_running == "No" and not status.stopped_by_operator)
    yield "source_stopped_by_operator", _one(status.stopped_by_operator)
    yield "source_trouble", [((shot.trouble,), 1)] if shot.trouble else ()
    yield "source_info", [((status.kind, status.flavour or "", status.version or ""), 1)]
    yield "source_lag_seconds", _known(shot.behind_s)
    yield "source_lag_bytes", _one(shot.source_lag_bytes)
    yield "source_last_event_timestamp_seconds", _time(status.last_event_timestamp)
    yield "source_last_received_timestamp_seconds", _time(shot.last_heard_at)
    yield "source_last_heartbeat_timestamp_seconds", _time(shot.last_heartbeat_at)
    yield "source_heartbeat_period_seconds", _one(status.heartbeat_period_s)
    yield "source_heartbeats_total", _one(counters.heartbeats)
    yield "source_received_bytes_total", _one(counters.received_bytes)
    yield "source_received_events_total", _one(counters.received_events)
    yield "source_received_transactions_total", _one(counters.received_transactions)
    yield "source_attempts_total", _one(counters.attempts)
    yield "source_streams_total", _one(counters.streams)
    yield "source_losses_total", _by(_from_zero(counters.losses, _LOSSES))
    yield "source_acknowledgements_total", _one(counters.acknowledged)


def _archive_values(shot: RelaySnapshot) -> Iterator[tuple[str, Samples]]:
    slow, scrub = shot.slow, shot.scrub
    yield "archive_up", _one(shot.generations[-1].state == "open")
    yield "archive_files", _one(shot.archive_files)
    yield "archive_bytes", _one(shot.archive_bytes)
    yield "archive_generations", _one(len(shot.generations))
    yield "archive_queued_bytes", _one(shot.queued_bytes)
    yield "archive_damaged_files", _one(shot.damaged_files)
    yield (
        "archive_oldest_event_timestamp_seconds",
        _time(next((one.first_timestamp for one in shot.generations if one.files), 0)),
    )
    yield "archive_purged_bytes_total", _one(shot.counters.purged_bytes)
    yield "disk_free_bytes", _known(slow.free_bytes)
    yield "disk_size_bytes", _known(slow.size_bytes)
    yield "disk_full_seconds", _one(math.inf if shot.full_in_s is None else shot.full_in_s)
    yield "ledger_rows", _by(slow.ledger.items()) if slow.ledger is not None else ()
    ledger = slow.ledger
    yield "ledger_entries", _known(None if ledger is None else sum(ledger.values()) - ledger.get(_ORDERED, 0))
    yield "scrub_files_due", _one(scrub.due)
    yield "scrub_checked_bytes", _one(scrub.checked_bytes)
    yield "scrub_total_bytes", _one(scrub.total_bytes)
    yield "scrub_oldest_check_timestamp_seconds", _time(scrub.oldest)


def _view_values(shot: RelaySnapshot) -> Iterator[tuple[str, Samples]]:
    views = shot.views
    yield "view_up", [((one.name,), one.is_open and not one.stop) for one in views]
    yield "view_behind_bytes", [((one.name,), one.behind_bytes) for one in views]
    yield "view_files", [((one.name,), one.files) for one in views]
    yield "view_bytes", [((one.name,), one.bytes) for one in views]


def _replica_values(shot: RelaySnapshot) -> Iterator[tuple[str, Samples]]:
    counters, replicas = shot.counters, shot.replicas
    states = ("streaming", "at_end", "waiting", "registered", "gone")
    yield "replicas", [((state,), sum(one.state == state for one in replicas)) for state in states]
    yield "replicas_lag_seconds_max", _one(max((one.behind_s or 0.0 for one in replicas), default=0.0))
    named = [((str(one.server_id), one.account, one.host, one.view), one) for one in replicas]
    yield "replica_up", [(labels, one.is_connected) for labels, one in named]
    yield "replica_lag_seconds", [(labels, one.behind_s) for labels, one in named if one.behind_s is not None]
    yield "replica_lag_bytes", [(labels, one.behind_bytes) for labels, one in named if one.behind_bytes is not None]
    yield "replica_sent_bytes", [(labels, one.sent_bytes) for labels, one in named if one.is_connected]
    yield "connections_open", _one(shot.connected)
    yield "connections_total", _one(counters.connections)
    yield "connections_refused_total", _by(_from_zero(counters.turned_away, _TURNED_AWAY))
    aborted = {"before_login": counters.aborted_connects, "after_login": counters.aborted_clients}
    yield "connections_aborted_total", _by(aborted.items())
    yield "logins_total", _by({"accepted": counters.logins, "refused": counters.login_failures}.items())
    yield "dumps_total", _one(counters.dumps_begun)
    yield (
        "dumps_refused_total",
        _by(_from_zero({str(key): count for key, count in counters.dumps_refused.items()}, _DUMP_ERRORS)),
    )
    yield "statements_total", _one(counters.statements)
    yield "sent_bytes_total", _one(counters.sent_bytes)
    yield "received_bytes_total", _one(counters.client_bytes_received)


def _from_zero(counts: Mapping[str, int], names: tuple[str, ...]) -> Iterable[tuple[str, int]]:
    return (dict.fromkeys(names, 0) | dict(counts)).items()


def _one(value: float) -> Samples:
    return [((), float(value))]


def _known(value: float | None) -> Samples:
    return () if value is None else [((), float(value))]


def _time(value: float) -> Samples:
    """Return no sample for a time that never was: an age computed from it would be half a century."""
    return [((), float(value))] if value else ()


def _by(values: Iterable[tuple[str, float]]) -> Samples:
    return [((name,), float(value)) for name, value in values]
