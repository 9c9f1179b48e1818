"""The metrics by name: kind, meaning, labels. docs/METRICS.md is generated from this.

python -m relay.http.answers.metric_families > docs/METRICS.md
"""

from dataclasses import dataclass
from typing import Final, Literal

PREFIX: Final = "binlog_relay_"
Kind = Literal["gauge", "counter", "histogram"]


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """name: without the prefix, with `_total`. part: of the page. labels: each with a bounded number of values."""

    part: str
    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()

    @property
    def full_name(self) -> str:
        """The name with its prefix, as it is served."""
        return PREFIX + self.name


_REPLICA: Final = ("server_id", "account", "host", "view")
_APPLIED: Final = ("replica", "server_id")


def _source(name: str, kind: Kind, text: str, *labels: str) -> MetricFamily:
    return MetricFamily("The source", name, kind, text, labels)


def _archive(name: str, kind: Kind, text: str, *labels: str) -> MetricFamily:
    return MetricFamily("The archive", name, kind, text, labels)


def _retention(name: str, kind: Kind, text: str, *labels: str) -> MetricFamily:
    return MetricFamily("Retention", name, kind, text, labels)


def _tiers(name: str, kind: Kind, text: str, *labels: str) -> MetricFamily:
    return MetricFamily("Tiers", name, kind, text, labels)


def _mirror(name: str, kind: Kind, text: str) -> MetricFamily:
    return MetricFamily("The copy in the bucket", name, kind, text)


def _reads(name: str, kind: Kind, text: str, *labels: str) -> MetricFamily:
    return MetricFamily("Reading packed binlogs", name, kind, text, labels)


def _view(name: str, kind: Kind, text: str) -> MetricFamily:
    return MetricFamily("Views", name, kind, text, ("view",))


def _replicas(name: str, kind: Kind, text: str, *labels: str) -> MetricFamily:
    return MetricFamily("Replicas and clients", name, kind, text, labels)


def _process(name: str, kind: Kind, text: str, *labels: str) -> MetricFamily:
    return MetricFamily("The process", name, kind, text, labels)


FAMILIES: Final = (
    _source("source_connected", "gauge", "1 while a stream of the source is received, else 0."),
    _source("source_given_up", "gauge", "1 when the relay does not try its source again before somebody acts, else 0."),
    _source("source_stopped_by_operator", "gauge", "1 after STOP REPLICA, until START REPLICA."),
    _source(
        "source_trouble", "gauge", "1 for why the source is not followed, by the name in docs/ERRORS.md.", "trouble"
    ),
    _source("source_info", "gauge", "Always 1; of which kind the source is.", "kind", "flavour", "version"),
    _source(
        "source_lag_seconds",
        "gauge",
        "Age of the newest archived event while events come, 0 when all that came is archived. "
        "No sample: there is no stream, or it is too new.",
    ),
    _source(
        "source_lag_bytes",
        "gauge",
        "Bytes that the relay received from the source and has not archived as whole "
        "transactions. What the source has not sent yet is not in it.",
    ),
    _source(
        "source_last_event_timestamp_seconds", "gauge", "Time of the newest archived event, by the source's clock."
    ),
    _source("source_last_received_timestamp_seconds", "gauge", "When events came from the source last."),
    _source("source_last_heartbeat_timestamp_seconds", "gauge", "When a heartbeat came last. No sample: none yet."),
    _source("source_heartbeat_period_seconds", "gauge", "How often a silent source sends heartbeats; 0: a directory."),
    _source("source_heartbeats_total", "counter", "Heartbeats from the source."),
    _source("source_received_bytes_total", "counter", "Bytes of binlogs from the source."),
    _source("source_received_events_total", "counter", "Events from the source."),
    _source("source_received_transactions_total", "counter", "Transactions from the source."),
    _source("source_attempts_total", "counter", "How often the relay began to connect to the source."),
    _source("source_streams_total", "counter", "How often the source gave the relay a stream."),
    _source("source_losses_total", "counter", "Attempts and streams that ended, by the kind of failure.", "kind"),
    _source("source_acknowledgements_total", "counter", "Acknowledgements to a semi-synchronous source."),
    _source("kernel_seconds", "histogram", "How long the compiled part took for what came from the source at once."),
    _archive("archive_up", "gauge", "1 while the archive can be written, 0 after a write failed."),
    _archive("archive_files", "gauge", "Binlogs in the archive, without those of views."),
    _archive("archive_bytes", "gauge", "Bytes of these binlogs."),
    _archive("archive_generations", "gauge", "Generations of the archive, one for each source."),
    _archive("archive_queued_bytes", "gauge", "Bytes that were received and are not written yet."),
    _archive("archive_damaged_files", "gauge", "Files that are known not to be what was archived."),
    _archive("archive_oldest_event_timestamp_seconds", "gauge", "Time of the oldest archived event."),
    _archive("archive_purged_bytes_total", "counter", "Bytes of binlogs that were removed."),
    _archive("archive_sync_seconds", "histogram", "How long fdatasync of the newest binlog took."),
    _archive("disk_free_bytes", "gauge", "What the relay may still write to the archive's file system."),
    _archive("disk_size_bytes", "gauge", "The size of this file system."),
    _archive(
        "disk_full_seconds",
        "gauge",
        "Until this file system is full, at the rate of the last six hours and if nothing is "
        "removed; +Inf where nothing comes.",
    ),
    _archive(
        "ledger_rows",
        "gauge",
        "Rows of the ledger, by the kind in docs/ERRORS.md. No sample: it cannot be read.",
        "kind",
    ),
    _archive(
        "ledger_entries", "gauge", "Rows of the ledger of all kinds but `purged`: what happened and was not ordered."
    ),
    _archive("scrub_files_due", "gauge", "Files whose check is due."),
    _archive("scrub_checked_bytes", "gauge", "Bytes of complete files that were checked within archive.scrub."),
    _archive("scrub_total_bytes", "gauge", "Bytes of complete files."),
    _archive("scrub_oldest_check_timestamp_seconds", "gauge", "When the file was checked that is unchecked longest."),
    _retention("retention_on", "gauge", "1 while `[retention]` of relay.toml has a limit, else 0."),
    _retention(
        "retention_last_pass_timestamp_seconds", "gauge", "When it was decided last what goes. No sample: not yet."
    ),
    _retention(
        "retention_removed_files_total",
        "counter",
        "Binlogs that were removed for a limit. `archive`: mirror, or a view's name; `limit`: keep_for, keep_bytes, min_free.",
        "archive",
        "limit",
    ),
    _retention("retention_removed_bytes_total", "counter", "Bytes of these binlogs.", "archive", "limit"),
    _retention(
        "retention_held_back_bytes",
        "gauge",
        "Bytes of binlogs that a limit would remove now, and that something needs. `kept_by`: replica, reader, view, newest (it is the "
        "newest file), keep_at_least, bucket, mirror. No sample: the limit is kept.",
        "archive",
        "limit",
        "kept_by",
    ),
    _retention(
        "retention_missing_bytes", "gauge", "How much room is missing to min_free although all that may go is gone."
    ),
    _retention("retention_failures_total", "counter", "How often files could not be removed."),
    _retention(
        "retention_replicas",
        "gauge",
        "Replicas that it knows: connected, away, forgotten (away for so long that they keep nothing any more).",
        "state",
    ),
    _tiers(
        "tier_files",
        "gauge",
        "Binlogs of the mirror by tier: hot, cold, object. No sample of this part: nothing moves.",
        "tier",
    ),
    _tiers("tier_bytes", "gauge", "Bytes of these binlogs, as replicas get them.", "tier"),
    _tiers("tier_stored_bytes", "gauge", "Bytes that they take: on the disk, or in the bucket.", "tier"),
    _tiers("tier_moved_files_total", "counter", "Binlogs that were moved, by the tier they went to.", "tier"),
    _tiers("tier_moved_bytes_total", "counter", "Bytes of these binlogs, as replicas get them.", "tier"),
    _tiers("tier_waiting_files", "gauge", "Moves that are due."),
    _tiers("tier_purged_files_in_bucket", "gauge", "Binlogs that were purged and that the bucket still has."),
    _tiers("tier_failures_total", "counter", "How often a file could not be moved, or not be removed from the bucket."),
    _tiers(
        "bucket_failing", "gauge", "1 while the bucket does not answer, or refuses, as far as files are moved; else 0."
    ),
    _tiers("bucket_requests_total", "counter", "Requests to the bucket for moves, tries counted."),
    _tiers("bucket_retries_total", "counter", "Of these, those that were tried again."),
    _tiers("bucket_failures_total", "counter", "Requests that were given up or refused."),
    _tiers("bucket_read_bytes_total", "counter", "Bytes that were read to compare what was uploaded."),
    _tiers("bucket_written_bytes_total", "counter", "Bytes that were uploaded."),
    _mirror(
        "mirror_up",
        "gauge",
        "1 while the bucket follows the archive, 0 while an attempt failed or it is refused. No sample: "
        "there is no [archive.mirror].",
    ),
    _mirror(
        "mirror_lag_bytes",
        "gauge",
        "Bytes that are published and not in the bucket yet: what the loss of the disk would cost.",
    ),
    _mirror("mirror_lag_seconds", "gauge", "For how long there have been such bytes; 0: there are none."),
    _mirror("mirror_copied_files_total", "counter", "Whole binlogs that were copied."),
    _mirror("mirror_copied_parts_total", "counter", "Parts of the binlog that grows that were copied."),
    _mirror(
        "mirror_left_out_files",
        "gauge",
        "Binlogs that are not copied as they are damaged on the relay's disk, or lost in the bucket: the copy has holes.",
    ),
    _mirror(
        "mirror_lost_files_total", "counter", "Binlogs that were purged before they were copied: the copy has holes."
    ),
    _mirror("mirror_failures_total", "counter", "Attempts that failed."),
    _mirror("mirror_written_bytes_total", "counter", "Bytes that were uploaded."),
    _reads(
        "read_cache_limit_bytes",
        "gauge",
        "`read_cache` of [archive.tiers]. No sample of this part: relay.toml has neither [archive.tiers] nor [archive.bucket].",
    ),
    _reads("read_cache_bytes", "gauge", "Bytes of frames that are kept in memory or on their way."),
    _reads("read_cache_hits_total", "counter", "How often a reader came to a frame that was in memory."),
    _reads(
        "read_cache_shared_total", "counter", "How often a reader came to a frame that was on its way for another one."
    ),
    _reads("read_cache_misses_total", "counter", "How often a reader came to a frame that had to be fetched for it."),
    _reads(
        "read_cache_evictions_total",
        "counter",
        "Frames that went to make room. Many of them beside many misses: `read_cache` is too small for these replicas.",
    ),
    _reads("read_cache_fetches_in_progress", "gauge", "Frames that are on their way."),
    _reads("read_cache_waiting", "gauge", "Readers that wait for room to fetch a frame."),
    _reads(
        "read_cache_fetches_total", "counter", "Fetches, of one frame or several. `source`: bucket, disk.", "source"
    ),
    _reads("read_cache_fetched_bytes_total", "counter", "Bytes that were fetched, as they are stored.", "source"),
    _reads(
        "read_cache_errors_total",
        "counter",
        "What could not be had. `kind`: bucket_away (the bucket does not answer, which is known), unavailable (not now: the bucket, a "
        "key), damaged (not what was packed), other (the disk).",
        "kind",
    ),
    _reads(
        "bucket_away",
        "gauge",
        "1 while the bucket does not answer those who read: they are told at once. No sample: there is no bucket.",
    ),
    _reads("bucket_away_times_total", "counter", "How often it was so."),
    _reads("bucket_requests_spared_total", "counter", "Requests that were not made because it was so."),
    _view("view_up", "gauge", "1 while the view is open and goes on, 0 when it is not open or has stopped."),
    _view("view_behind_bytes", "gauge", "Archived bytes that are not in the view yet."),
    _view("view_files", "gauge", "Binlogs of the view."),
    _view("view_bytes", "gauge", "Bytes of these binlogs."),
    _replicas(
        "replicas",
        "gauge",
        "Replicas by state: streaming, at_end, waiting for a position, registered without a stream, gone "
        "within the last day.",
        "state",
    ),
    _replicas("replicas_lag_seconds_max", "gauge", "The lag of the replica that is furthest behind."),
    _replicas(
        "replica_up",
        "gauge",
        "1 while this replica is connected, 0 for a day after it left. "
        "At most 500 replicas are told one by one, those that are furthest behind.",
        *_REPLICA,
    ),
    _replicas(
        "replica_lag_seconds",
        "gauge",
        "How long ago the archive had what this replica was sent last. "
        "What it has applied of that: `replica_applied_lag_seconds`.",
        *_REPLICA,
    ),
    _replicas("replica_lag_bytes", "gauge", "Bytes of binlogs that this replica was not sent yet.", *_REPLICA),
    _replicas("replica_sent_bytes", "gauge", "Bytes that this replica was sent in the stream that runs.", *_REPLICA),
    _replicas(
        "replica_applied_known",
        "gauge",
        "1 if it is known how far this replica of a `[[replica]]` has applied, else 0: it does not answer, or does not follow this "
        "relay. `replica`: HOST:PORT, as in relay.toml; `server_id`: 0 until it has answered. No sample of this and the next three: "
        "relay.toml has no `[[replica]]`.",
        *_APPLIED,
    ),
    _replicas(
        "replica_applying", "gauge", "1 while this replica's SQL thread runs, else 0. No sample: not known.", *_APPLIED
    ),
    _replicas(
        "replica_applied_lag_seconds",
        "gauge",
        "How long ago the archive had what this replica is to apply next; 0: it has applied all. No sample: not known.",
        *_APPLIED,
    ),
    _replicas(
        "replica_applied_lag_bytes",
        "gauge",
        "Bytes of binlogs that this replica has not applied yet. No sample: not known.",
        *_APPLIED,
    ),
    _replicas("connections_open", "gauge", "Connections of replicas and clients now."),
    _replicas("connections_total", "counter", "Connections that came."),
    _replicas(
        "connections_refused_total", "counter", "Connections that got an error in place of a greeting.", "reason"
    ),
    _replicas(
        "connections_aborted_total",
        "counter",
        "Connections that ended without a login, or later without a goodbye.",
        "when",
    ),
    _replicas("logins_total", "counter", "Logins by result: accepted, refused.", "result"),
    _replicas("dumps_total", "counter", "Streams that began."),
    _replicas(
        "dumps_refused_total",
        "counter",
        "Requests for binlogs that were answered with an error, and streams that ended with one, by its number.",
        "error",
    ),
    _replicas("statements_total", "counter", "Statements of clients."),
    _replicas("sent_bytes_total", "counter", "Bytes sent to replicas and clients."),
    _replicas("received_bytes_total", "counter", "Bytes received from replicas and clients."),
    _process("build_info", "gauge", "Always 1; what runs.", "version", "python", "kernel"),
    _process("ready", "gauge", "1 when /readyz says that the relay is ready, else 0."),
    _process("start_time_seconds", "gauge", "When the relay began, Unix time."),
    _process("loop_delay_seconds", "histogram", "How late the event loop came to a timer of 100 ms."),
    _process(
        "certificate_expiry_timestamp_seconds",
        "gauge",
        "Until when a certificate is valid: listen, http, source.",
        "use",
    ),
    _process("facts_age_seconds", "gauge", "How old the figures of disk and ledger are."),
    _process("memory_budget_bytes", "gauge", "`memory.budget`."),
    _process(
        "memory_held_bytes",
        "gauge",
        "What clients make the relay hold in memory: unfinished requests, unread answers, GTID sets, prepared statements.",
    ),
    _process("memory_connections_ended_total", "counter", "Connections that ended because the budget was used up."),
    _process("http_connections", "gauge", "HTTP connections now."),
    _process("http_requests_total", "counter", "HTTP requests that were answered.", "path", "code"),
    _process("http_refusals_total", "counter", "HTTP connections and requests that were refused.", "reason"),
)

_HEAD: Final = """\
# Metrics

<!-- Written by python -m relay.http.answers.metric_families: change the texts there. -->

With `[http] enabled = true` ([CONFIGURATION.md](CONFIGURATION.md#http)) the relay answers at `http.host` and `http.port`:

| path | answer |
|---|---|
| `/metrics` | the metrics of this page, in the text format of Prometheus |
| `/healthz` | `200 ok` while the process lives and its event loop answers. Never needs the token |
| `/readyz` | `200 ready`, or `503` with a line for each reason. Never needs the token |
| `/api/v1/…` | the same and more as JSON, described in [openapi.json](openapi.json) (`/api/v1/openapi.json`) |

`/healthz` is answered over the Unix socket `<archive.dir>/<source.name>.health.sock`, too, with or without `[http]`: nobody at a port
keeps it busy.

`/readyz` says why it is not ready: `archive_failed` (a write failed), `source_not_attached` (nothing is received),
`source_behind` (by more than `http.ready_behind_s`). Below `/api/v1/` there are `overview`, `source`, `archive`, `files`, `map`,
`replicas`, `views`, `ledger`, `scrub`, `retention`, `tiers`, `mirror`, `history` and `positions?file=…&offset=…`, which tells whether
a replica may start there.

It only reads: there is no request that changes anything. Requests are `GET` or `HEAD`, without a body. On loopback it answers only to
loopback names, `http.host` and `http.hosts` in the `Host` header; others get 421 `host_refused`: no web page can read it through a
browser on that machine (DNS rebinding). Behind a proxy add the proxy's name to `http.hosts`. With a token:
`curl -H "Authorization: Bearer $(cat /etc/binlog-relay/http.token)" http://127.0.0.1:9307/metrics`.

In Prometheus:

    scrape_configs:
      - job_name: binlog-relay
        scrape_interval: 15s
        authorization: { credentials_file: /etc/prometheus/binlog-relay.token }   # where there is a token
        static_configs: [{ targets: ["relay.example:9307"] }]

Alert rules: [deploy/prometheus/binlog-relay.rules.yml](../deploy/prometheus/binlog-relay.rules.yml); what to do for each alert:
[RUNBOOK.md](RUNBOOK.md). A dashboard for Grafana: [deploy/grafana/binlog-relay.json](../deploy/grafana/binlog-relay.json).

All names begin with `binlog_relay_`. Units are seconds and bytes; times are Unix times in seconds. Counters begin again with the
relay. Labels have a bounded number of values: replicas at most 500, kinds of the ledger at most 100. Beside them there are the usual
`process_…` metrics: processor time, memory, descriptors. Disk, ledger and certificates are looked at every 10 s, whatever the
scrape's interval.

## What it costs

A scrape of a relay with 100 replicas takes 9 ms of a processor: 0.2 % of a core at one each 5 s (2 cores of a virtual machine,
measured while it was busy otherwise; a test fails from 1 % on). A thousand scrapers at once are served from one page, made at most
twice a second, in 1.6 s, with less than 1 MiB of memory more. With more than
`http.max_connections` the address with most of them loses one, requests that do not become whole and answers that are not taken end
after `http.request_timeout_s`, a head of more than some KiB or any body is refused.

Again:

    pytest -s tests/interop/test_http_monitoring.py -k hundredth
    pytest -s tests/faults/test_http_access.py -k thousand
"""


def page() -> str:
    """Return docs/METRICS.md."""
    lines = [_HEAD]
    for part in dict.fromkeys(one.part for one in FAMILIES):
        lines.append(f"## {part}\n\n| metric | kind | labels | meaning |\n|---|---|---|---|")
        lines += [
            f"| `{one.full_name}` | {one.kind} | {', '.join(f'`{label}`' for label in one.labels)} | {one.help} |"
            for one in FAMILIES
            if one.part == part
        ]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201 - a command's own output
