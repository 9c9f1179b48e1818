"""A night on call: an alert of a real Prometheus, the runbook's instructions, and the sign that it is over."""

import json
from collections.abc import Callable
from typing import Any, Final

import pymysql
import pymysql.cursors

from tests.support.chain import wait_until
from tests.support.http_relay import get, get_json
from tests.support.prometheus_server import PrometheusServer
from tests.support.relay_process import REPLICA_PASSWORD, RelayProcess
from tests.support.runbook_entry import RunbookEntry

DBA: Final = "dba"
# Another one than the replicas': a relay blocks addresses of which too many logins failed.
_DBA_AT: Final = "127.0.0.2"
_RAISED_S: Final = 60.0
_OVER_S: Final = 90.0


class RaisedAlert:
    """An alert that fires. Its entry of the runbook says what to do."""

    def __init__(self, night: "NightWatch", name: str) -> None:
        self._night, self._entry = night, RunbookEntry(name)
        self.name = name

    def look_at(self, words: str) -> None:
        """Check that the part "Look at" has these words. Raises: AssertionError."""
        self._entry.says("Look at", words)

    def do(self, words: str) -> None:
        """Check that the part "Do" has these words; the test does that next. Raises: AssertionError."""
        self._entry.says("Do", words)

    def over_when(self, words: str, true: Callable[[], object]) -> None:
        """Check that the part "Over when" has these words, and that they come true. Raises: AssertionError."""
        self._entry.says("Over when", words)
        wait_until(true, f"{self.name}, over when: {words}\n{self._night.relay.log_tail(5)}", _OVER_S)

    def ends(self) -> None:
        """Wait until Prometheus resolves it. Raises: AssertionError."""
        wait_until(lambda: self.name not in self._night.firing(), f"{self.name} to end", _OVER_S)


class NightWatch:
    """A watch over one relay, which has an account `dba` with admin rights and REPLICA_PASSWORD; `http_port` is that of its [http]."""

    def __init__(self, prometheus: PrometheusServer, relay: RelayProcess, http_port: int) -> None:
        self._prometheus, self._target = prometheus, f"127.0.0.1:{http_port}"
        self.relay, self.http_port = relay, http_port
        prometheus.watch(self._target)
        up = f'up{{instance="{self._target}"}}'
        wait_until(lambda: prometheus.ask(up) == [1.0], "Prometheus to scrape the relay", _RAISED_S)

    def firing(self) -> dict[str, str]:
        """Return the alerts that fire, each with its summary."""
        alerts = self._prometheus.alerts(self._target)
        return {one["labels"]["alertname"]: one["annotations"]["summary"] for one in alerts}

    def alert(self, name: str) -> RaisedAlert:
        """Return when it fires; it names its place in the runbook. Raises: AssertionError."""
        wait_until(lambda: name in self.firing(), f"{name} to fire\n{self.relay.log_tail(5)}", _RAISED_S)
        for one in self._prometheus.alerts(self._target):
            if one["labels"]["alertname"] == name:
                assert one["annotations"]["runbook"] == f"docs/RUNBOOK.md#{name.lower()}"
        return RaisedAlert(self, name)

    def is_over(self) -> None:
        """Check that no alert fires any more, and `binlog-relay status` has no problem. Raises: AssertionError."""
        wait_until(lambda: not self.firing(), "all alerts to end", _OVER_S)
        wait_until(lambda: self.relay.command("status").returncode == 0, "status to end with code 0")

    # ---- what the person on call looks at ---------------------------------------------------------------------------

    def console(self, statement: str) -> list[dict[str, Any]]:
        """Run a statement at the relay, as its admin account and from its own address; return the rows by column name."""
        with (
            pymysql.connect(
                host="127.0.0.1",
                port=self.relay.port,
                bind_address=_DBA_AT,
                user=DBA,
                password=REPLICA_PASSWORD,
                cursorclass=pymysql.cursors.DictCursor,
            ) as link,
            link.cursor() as cursor,
        ):
            cursor.execute(statement)
            return list(cursor.fetchall())

    def source_status(self, column: str) -> Any:
        """Return the column of SHOW REPLICA STATUS at the relay that has this in its name."""
        (row,) = self.console("SHOW REPLICA STATUS")
        return next(value for name, value in row.items() if column in name)

    def has_yes_for(self, thread: str) -> bool:
        """Return whether SHOW REPLICA STATUS has Yes for "IO" or "SQL"."""
        return bool(self.source_status(f"{thread}_Running") == "Yes")

    def readiness(self) -> str:
        """Return the text of /readyz."""
        return get(self.http_port, "/readyz", token=None)[1].decode().strip()

    def answer(self, path: str) -> Any:
        """Return the answer of /api/v1/…."""
        return get_json(self.http_port, path)

    def ledger(self) -> list[str]:
        """Return the kinds of the ledger's rows, by `binlog-relay archive ledger`."""
        told = self.relay.command("archive", "ledger", "--json")
        return [str(json.loads(line)["kind"]) for line in told.stdout.splitlines()]

    def run(self, *words: str) -> str:
        """Run a command of `binlog-relay` that ends with code 0, and return its output. Raises: AssertionError."""
        done = self.relay.command(*words)
        assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout
