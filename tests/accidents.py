"""`python -m tests.accidents [--case mysql56-reset-position ...]`: twenty accidents of a source, each with the documented way on.

Prints a line for each. Exit status 0: every replica came to equal tables or to a named stop; 1: one did not; 2: a server is
missing.
"""

import argparse
import contextlib
import sys
import tempfile
import time
import traceback
from pathlib import Path

from deploy.servers import SERVERS
from tests.support.source_accidents import CASES, AccidentRun, Case


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.accidents", description=__doc__)
    names = {str(case): case for case in CASES}
    parser.add_argument("--case", action="append", choices=[*names], help="only this one; may be repeated")
    arguments = parser.parse_args()
    wanted = [names[name] for name in arguments.case or names]
    for server in {case.server for case in wanted}:
        reason = SERVERS[server].missing()
        if reason is not None:
            print(reason, file=sys.stderr)
            return 2
    failed = [case for case in wanted if not passes(case)]
    print(f"{len(wanted) - len(failed)} of {len(wanted)} accidents have their way on", flush=True)
    return 1 if failed else 0


def passes(case: Case) -> bool:
    began = time.monotonic()
    with contextlib.ExitStack() as made, tempfile.TemporaryDirectory(prefix="accident-") as directory:
        try:
            AccidentRun(lambda kind: made.enter_context(SERVERS[kind]()), case, Path(directory)).run()
        except Exception:
            traceback.print_exc()
            print(f"{case}: FAILED after {time.monotonic() - began:.0f} s", flush=True)
            return False
    print(f"{case}: {time.monotonic() - began:.0f} s", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
