"""The survey of what a newer MySQL refuses: python -m tests.support.refusal_survey SOURCE [every NTH case]

It runs every kind of statement with every clause on a real source (mysql56, mariadb, mariadb118), makes a view of its binlog, and runs
the view's statements on a real MySQL 9.7. What the replica refuses and no stop of the view names is printed; the exit code is then 1.
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from deploy.servers import SERVERS, Server
from tests.support.refusal_cases import mariadb_cases, mysql_cases
from tests.support.refusal_trial import RefusalCase, RefusalOutcome, RefusalTrial

_FAST: Final = ("--innodb-flush-log-at-trx-commit=0", "--sync-binlog=0", "--event-scheduler=OFF")
SOURCE_OPTIONS: Final = {
    "mysql56": (*_FAST, "--innodb-file-format=Barracuda", "--innodb-large-prefix=ON"),
    "mariadb": (*_FAST, "--sql-mode="),
    "mariadb118": (*_FAST, "--sql-mode="),
}
REPLICA_OPTIONS: Final = ("--gtid-mode=ON", "--enforce-gtid-consistency=ON", *_FAST)
_AT_ONCE: Final = 1000
KNOWN: Final = frozenset((3995,))
"""Errors that are about what a statement computes and not about what it is: the survey of expressions has them."""


def cases_of(source: str, nth: int = 1) -> list[RefusalCase]:
    """Return each nth case for a source."""
    cases: Iterator[RefusalCase] = mysql_cases() if source.startswith("mysql") else mariadb_cases()
    return list(cases)[::nth]


def refused_silently(outcomes: list[RefusalOutcome]) -> list[str]:
    """Return what the replica refused in cases in which the view did not stop."""
    return [
        f"{error} [{outcome.case.sql_mode}]"
        for outcome in outcomes
        if not outcome.stops
        for error in outcome.errors
        if int(error.partition(":")[0]) not in KNOWN
    ]


def main() -> int:
    """Run the survey."""
    source_name, nth = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
    cases = cases_of(source_name, nth)
    source: Server = SERVERS[source_name]().start(server_id=1, options=list(SOURCE_OPTIONS[source_name]))
    replica: Server = SERVERS["mysql97"]().start(server_id=2, options=list(REPLICA_OPTIONS))
    stops: Counter[str] = Counter()
    found: list[str] = []
    refused = done = 0
    with source, replica, tempfile.TemporaryDirectory() as directory:
        for start in range(0, len(cases), _AT_ONCE):
            some = cases[start : start + _AT_ONCE]
            outcomes = RefusalTrial(source, replica, Path(directory)).run(some)
            stops.update(reason.name for outcome in outcomes for reason in outcome.stops)
            refused += sum(bool(outcome.refused) for outcome in outcomes)
            found += refused_silently(outcomes)
            done += len(some)
            print(f"{done} of {len(cases)} cases, {len(found)} refused without a stop", flush=True)
    print(f"{refused} cases are refused by the source in part; stops: {dict(stops)}")
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
