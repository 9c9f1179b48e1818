"""Alert rules and dashboard: they name metrics that there are, and each alert fires for its fault and for nothing else."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from deploy.servers import ServerUnavailable
from relay.http.answers.metric_families import FAMILIES
from tests.support.prometheus_server import RULES, prometheus_tools

DASHBOARD = RULES.parents[1] / "grafana" / "binlog-relay.json"
NAMES = {
    name
    for one in FAMILIES
    for name in (
        [one.full_name + end for end in ("_bucket", "_sum", "_count")] if one.kind == "histogram" else [one.full_name]
    )
}
NAMED = re.compile(r"\bbinlog_relay_\w+")
R = "binlog_relay_"
# The alert; series that raise it, one value a minute; series that do not.
CASES = [
    ("Down", {'up{job="binlog-relay"}': "0x20"}, {'up{job="binlog-relay"}': "1x20"}),
    (
        "SourceNotAttached",
        {R + "source_connected": "0x20", R + "source_stopped_by_operator": "0x20"},
        {R + "source_connected": "0x20", R + "source_stopped_by_operator": "1x20"},
    ),
    ("SourceGivenUp", {R + "source_given_up": "1x20"}, {R + "source_given_up": "0x20"}),
    ("SourceStopped", {R + "source_stopped_by_operator": "1x70"}, {R + "source_stopped_by_operator": "1x20 0x50"}),
    ("SourceBehind", {R + "source_lag_seconds": "301x20"}, {R + "source_lag_seconds": "301x2 5x20"}),
    ("Reconnects", {R + 'source_losses_total{kind="network"}': "0+1x20"}, {R + 'source_losses_total{kind="network"}': "2x20"}),
    ("ArchiveFailed", {R + "archive_up": "0x20"}, {R + "archive_up": "1x20"}),
    (
        "DiskFull",
        {R + "disk_free_bytes": "4x20", R + "disk_size_bytes": "100x20"},
        {R + "disk_free_bytes": "6x20", R + "disk_size_bytes": "100x20"},
    ),
    ("DiskFullSoon", {R + "disk_full_seconds": "80000x20"}, {R + "disk_full_seconds": "1e12x20"}),
    (
        "RetentionHeldBack",
        {R + 'retention_held_back_bytes{archive="mirror",limit="keep_for",kept_by="replica"}': "0x10 5x60"},
        {R + 'retention_held_back_bytes{archive="mirror",limit="keep_for",kept_by="reader"}': "5x20 0x50"},
    ),
    ("BucketFails", {R + "bucket_failing": "1x60"}, {R + "bucket_failing": "1x20 0x40"}),
    ("BucketAway", {R + "bucket_away": "1x20"}, {R + "bucket_away": "1x3 0x20"}),
    (
        "FilesWait",
        {R + "tier_waiting_files": "3x70", R + 'tier_moved_files_total{tier="cold"}': "7x70"},
        {R + "tier_waiting_files": "3x70", R + 'tier_moved_files_total{tier="cold"}': "0+1x70"},
    ),
    ("MirrorBehind", {R + "mirror_up": "0x30"}, {R + "mirror_up": "1x30"}),
    ("MirrorHasHole", {R + "mirror_left_out_files": "1x20"}, {R + "mirror_left_out_files": "0x30"}),
    ("FileDamaged", {R + "archive_damaged_files": "1x20"}, {R + "archive_damaged_files": "0x20"}),
    ("LedgerGrew", {R + "ledger_entries": "0x15 1x5"}, {R + "ledger_entries": "7x20"}),
    (
        "SyncSlow",
        {R + "archive_sync_seconds_sum": "0+60x20", R + "archive_sync_seconds_count": "0+60x20"},
        {R + "archive_sync_seconds_sum": "0+1x20", R + "archive_sync_seconds_count": "0+60x20"},
    ),
    (
        "LoopSlow",
        {R + 'loop_delay_seconds_bucket{le="0.25"}': "0x20", R + 'loop_delay_seconds_bucket{le="1.0"}': "0+600x20",
         R + 'loop_delay_seconds_bucket{le="+Inf"}': "0+600x20"},
        {R + 'loop_delay_seconds_bucket{le="0.25"}': "0+600x20", R + 'loop_delay_seconds_bucket{le="+Inf"}': "0+600x20"},
    ),
    ("ReplicaBehind", {R + "replica_lag_seconds": "400x20"}, {R + "replica_lag_seconds": "4x20"}),
    ("ReplicaGone", {R + "replica_up": "0x20"}, {R + "replica_up": "0x2 1x20"}),
    (
        "ReplicaRefused",
        {R + 'dumps_refused_total{error="1236"}': "0x15 1x5"},
        {R + 'dumps_refused_total{error="1105"}': "0+1x20"},
    ),
    (
        "LoginsRefused",
        {R + 'logins_total{result="refused"}': "0x15 20x5"},
        {R + 'logins_total{result="accepted"}': "0+20x20"},
    ),
    ("ViewStopped", {R + "view_up": "0x20"}, {R + "view_up": "1x20"}),
    ("ViewBehind", {R + "view_behind_bytes": "2e9x20"}, {R + "view_behind_bytes": "2e6x20"}),
    (
        "CertificateExpires",
        {R + "certificate_expiry_timestamp_seconds": "500000x20"},
        {R + "certificate_expiry_timestamp_seconds": "5000000x20"},
    ),
    ("HttpRefused", {R + 'http_refusals_total{reason="token"}': "0+30x20"}, {R + 'http_refusals_total{reason="token"}': "9x20"}),
    ("FactsOld", {R + "facts_age_seconds": "121x20"}, {R + "facts_age_seconds": "9x20"}),
]  # fmt: skip


@pytest.mark.parametrize("path", [RULES, DASHBOARD], ids=lambda path: path.name)
def test_only_metrics_that_there_are_are_asked_for(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert set(NAMED.findall(text)) - NAMES == set()


def test_the_dashboard_has_a_title_and_a_question_in_each_panel() -> None:
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    assert len({panel["title"] for panel in panels}) == len(panels) > 10
    assert all(target["expr"] for panel in panels for target in panel["targets"])


def test_each_alert_has_a_case_and_says_what_to_do() -> None:
    text = RULES.read_text(encoding="utf-8")
    assert re.findall(r"- alert: BinlogRelay(\w+)", text) == [name for name, *_ in CASES]
    assert text.count("severity: ") == text.count("summary: ") == text.count("description: ") == len(CASES)


def test_each_alert_fires_for_its_fault_and_for_nothing_else(tmp_path: Path) -> None:
    try:
        promtool = prometheus_tools() / "promtool"
    except ServerUnavailable as error:
        pytest.skip(str(error))
    tests = []
    for name, bad, good in CASES:
        for series, fires in ((bad, True), (good, False)):
            expression = f'count(ALERTS{{alertname="BinlogRelay{name}",alertstate="firing"}})'
            at = "65m" if re.search(r"x[67]0", str(bad)) else "18m"
            asked = {
                "expr": expression,
                "eval_time": at,
                "exp_samples": [{"labels": "{}", "value": 1}] if fires else [],
            }
            given = [{"series": one, "values": values} for one, values in series.items()]
            tests.append({"interval": "1m", "name": name, "input_series": given, "promql_expr_test": [asked]})
    file = tmp_path / "tests.yml"
    file.write_text(
        json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}), encoding="utf-8"
    )
    for command in (["check", "rules", str(RULES)], ["test", "rules", str(file)]):
        ended = subprocess.run([promtool, *command], capture_output=True, text=True, timeout=120, check=False)
        assert ended.returncode == 0, ended.stdout + ended.stderr
