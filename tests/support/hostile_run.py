"""One relay that met a hostile series: it is killed and restarted, and every command examines its archive.

A case says how the series is taken (from a source that sends it, or from a directory), when the relay is killed, and what else the
relay does with it. Our own faults are reported in sentences; if there are none, everything was served, or ended by a documented name.
"""

import contextlib
import random
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from relay.binlog_tables.arrow import read
from tests.support.fake_source import FakeSource
from tests.support.free_port import free_port
from tests.support.hostile_binlogs import HostileSeries, hostile_series
from tests.support.loop_holds import LIMIT_S, NO_HOLD, Hold
from tests.support.relay_process import RelayError, RelayProcess

DOCUMENTED: Final = frozenset({0, 1, 2, 3, 4})
"""Exit codes of commands; `run` itself must not end with 0 to 2."""
_OF_RUN: Final = frozenset({3, 4})
_OURS: Final = ("a fault of binlog-relay", "Traceback", "internal error")
_LEVELS: Final = ("events", "transactions", "statements", "rows")
_COMMANDS: Final = (("archive", "rebuild"), ("archive", "verify"), ("archive", "verify", "--deep"), ("archive", "list"))
_PROMPT_S: Final = 20.0


@dataclass(frozen=True)
class HostileCase:
    """A case. `series` is what the source has; `alive_s` is how long the relay runs each time before it is killed."""

    series: HostileSeries
    as_directory: bool
    alive_s: float
    with_view: bool
    with_tiers: bool

    def __str__(self) -> str:
        how = "directory" if self.as_directory else "server"
        return f"{self.series.what} ({how}{', view' * self.with_view}{', tiers' * self.with_tiers})"


def hostile_case(rnd: random.Random) -> HostileCase:
    """Draw any case."""
    return HostileCase(
        hostile_series(rnd), rnd.random() < 0.4, rnd.choice((0.05, 0.2, 0.5)), rnd.random() < 0.4, rnd.random() < 0.15
    )


class HostileRun:
    """One case in its own directory."""

    def __init__(self, case: HostileCase, directory: Path) -> None:
        self.case = case
        self.directory = directory
        self.findings: list[str] = []
        """Our own faults."""
        self.endings: list[str] = []
        """The names by which the stream ended."""
        self.longest_hold = NO_HOLD
        """The longest hold of the event loop, over all starts."""

    def run(self) -> list[str]:
        """Kill and restart it twice, with the commands in between; return `findings`."""
        with self._source() as source:
            relay = RelayProcess(self.directory, source, port=free_port(), sections=self._sections(), watch_loop=True)
            if self.case.with_view:
                relay.add_view(
                    name="v",
                    gtids="assign",
                    engines="innodb",
                    dependencies="writeset",
                    uuid="33333333-2222-1111-4444-555555555555",
                )
            try:
                self._start(relay, "the first start")
                self._start(relay, "the start after a kill")
                for words in _COMMANDS:
                    self._command(relay, *words)
                for file in self.case.series.files:
                    self._command(relay, "events", str(relay.archive / file)) if (
                        relay.archive / file
                    ).exists() else None
                self._start(relay, "the start after a rebuild")
                self._read(relay)
            finally:
                if relay.running:
                    relay.kill()
            self._look_at_log(relay)
            self.longest_hold = relay.loop_holds(of_all_starts=True).longest
            if self.longest_hold.cpu_s > LIMIT_S:
                self.findings.append(f"the event loop was held for {self.longest_hold}")
        return self.findings

    @contextlib.contextmanager
    def _source(self) -> Iterator[Any]:
        series = self.case.series
        if self.case.as_directory:
            place = self.directory / "binlogs"
            place.mkdir(parents=True)
            for name, data in series.files.items():
                (place / name).write_bytes(data)
            yield place
            return
        family = series.family
        with FakeSource(dict(series.files), family.flavour, family.version, checksum=family.checksum) as source:
            yield source

    def _sections(self) -> dict[str, dict[str, Any]]:
        sections: dict[str, dict[str, Any]] = {"archive": {"sync_interval_s": 0.05}}
        if self.case.with_tiers:
            bucket = self.directory / "bucket"
            bucket.mkdir(parents=True)
            sections["archive.bucket"] = {"url": f"file://{bucket}"}
            sections["archive.tiers"] = {"hot_bytes": "1KiB", "cold_bytes": "2KiB"}
        return sections

    def _start(self, relay: RelayProcess, what: str) -> None:
        try:
            relay.start()
            time.sleep(self.case.alive_s)
        except RelayError as error:
            if relay.running:
                self.findings.append(f"{what}: {error}")
        if relay.running:
            relay.kill()
            return
        code = relay.wait_ended()
        if code in _OF_RUN:
            self.endings.append(f"{what} ended with {code}")
        else:
            self.findings.append(f"{what} ended with {code}: {relay.log_tail(8)}")

    def _command(self, relay: RelayProcess, *words: str) -> None:
        done = relay.command(*words, timeout_s=_PROMPT_S)
        text = done.stdout + done.stderr
        if done.returncode not in DOCUMENTED or any(ours in text for ours in _OURS):
            self.findings.append(f"{' '.join(words)} ended with {done.returncode}: {text[-1500:]}")

    def _read(self, relay: RelayProcess) -> None:
        """Read it as the audits and the feed do."""
        if not relay.archived():
            return
        for level in _LEVELS:
            try:
                for batch in read(str(relay.archive), level):
                    batch.num_rows  # noqa: B018
            except Exception as error:
                if not _is_documented(error):
                    self.findings.append(f"level {level}: {type(error).__name__}: {error}")

    def _look_at_log(self, relay: RelayProcess) -> None:
        for line in relay.log_lines():
            text = str(line)
            if any(ours in text for ours in _OURS):
                self.findings.append(f"in the log: {text[:2500]}")
            elif line.get("event") in ("source_lost", "source_given_up"):
                self.endings.append(str(line.get("trouble")))
            elif line.get("event") == "view_stopped":
                self.endings.append(f"view: {line.get('reason')}")


def _is_documented(error: Exception) -> bool:
    return type(error).__module__.startswith(("relay.", "protocol.")) or isinstance(error, ValueError)


def run_case(case: HostileCase, directory: Path) -> tuple[list[str], list[str], Hold]:
    """Return findings, endings and the longest hold of the loop; the directory is removed if there are no findings."""
    run = HostileRun(case, directory)
    found = run.run()
    if not found:
        shutil.rmtree(directory, ignore_errors=True)
    return found, run.endings, run.longest_hold
