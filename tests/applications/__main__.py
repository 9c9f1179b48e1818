"""Applications from Debian's packages behind a view: does a MySQL 9.7 have the same rows, and where does the view stop?

    python -m tests.applications [--source mysql56|mariadb|mariadb118] [--format STATEMENT|MIXED] [NAME ...]

A line is printed for each application, and under it what stopped, differed or was refused by the source. Exit status 0 means that no
table differed, and that the replica had no error where the view did not stop.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from deploy.servers import SERVERS
from deploy.servers.location import ServerUnavailable
from tests.applications.schemas import APPLICATIONS
from tests.applications.trial import follow_application, scratch
from tests.support.view_trial import REPLICA_OPTIONS, ViewTrial

_OPTIONS = {"mysql56": ["--innodb-large-prefix=ON", "--innodb-file-format=Barracuda", "--innodb-file-per-table=1"]}


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", choices=("mysql56", "mariadb", "mariadb118"), default="mysql56")
    parser.add_argument("--format", choices=("STATEMENT", "MIXED"), default="STATEMENT")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    wrong = 0
    with SERVERS[given.source]() as old, SERVERS["mysql97"]() as new, tempfile.TemporaryDirectory() as directory:
        source = old.start(server_id=1, options=_OPTIONS.get(given.source, []))
        replica = new.start(server_id=2, options=list(REPLICA_OPTIONS))
        for application in APPLICATIONS:
            if given.names and application.name not in given.names:
                continue
            began = time.monotonic()
            here = ViewTrial(source, replica, scratch(Path(directory), application))
            try:
                found = follow_application(here, application, given.format, given.seed, given.rounds)
            except ServerUnavailable as error:
                print(f"{application.name}: {error}", flush=True)
                continue
            wrong += bool(not found.stops and (found.error or found.differing))
            print(f"{application.name}: {found.line()} ({time.monotonic() - began:.0f} s)", flush=True)
            for text in found.details():
                print(f"    {text}", flush=True)
    return min(1, wrong)


if __name__ == "__main__":
    sys.exit(main())
