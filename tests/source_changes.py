"""`python -m tests.source_changes [--changes 3] [--load 10] [--server mysql97 ...]`: the source changes again and again
under load, with replicas attached; no transaction may be missing or come twice.

Prints for each kind of server how many transactions there were, and how long replicas waited at each change.
"""

import argparse
import contextlib
import sys
import tempfile
from pathlib import Path

from deploy.servers import SERVERS
from tests.support.source_changes import OPTIONS, Changes


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.source_changes", description=__doc__)
    parser.add_argument("--changes", type=int, default=3, help="how often the source changes (default 3)")
    parser.add_argument("--load", type=float, default=10.0, help="seconds of load before and after each (default 10)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--server", action="append", choices=[*OPTIONS], help="one kind of server; all of them by default"
    )
    arguments = parser.parse_args()
    for name in arguments.server or OPTIONS:
        with contextlib.ExitStack() as made, tempfile.TemporaryDirectory(prefix="source-changes-") as directory:
            changes = Changes(
                lambda kind: made.enter_context(SERVERS[kind]()),
                name,
                Path(directory) / "relay",
                load_s=arguments.load,
                seed=arguments.seed,
            )
            outcome = changes.run(arguments.changes)
            waits = ", ".join(f"{seconds:.1f} s" for seconds in outcome.seconds)
            print(
                f"{name}: {outcome.changes} changes, {outcome.transactions} transactions of the writer, none missing and "
                f"none twice; a replica had all of the new source after {waits}",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
