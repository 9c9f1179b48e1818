"""The recording of what readers of SQL say.

check    whether they say the same; each change is printed with its statement. Exit status 1 where there are some.
record   writes down what they say now. --collect gathers the statements again first
answer   for another checkout's --against
"""

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from deploy.servers.location import ServerUnavailable
from tests.sql_verdicts.collecting import collected, distinct
from tests.sql_verdicts.corpus import Said, in_order, keep_statements, kept_statements
from tests.sql_verdicts.debian_schemas import package_statements
from tests.sql_verdicts.other_checkout import OtherCheckout, answer, changes_against
from tests.sql_verdicts.readers import READERS
from tests.sql_verdicts.recording import RECORDED, RECORDED_OF_PACKAGES, changes, read_recording, record


def _of_packages() -> list[Said]:
    """Those of the packages that can be had; none, with the reason, where none can."""
    try:
        return in_order(distinct(package_statements()))
    except ServerUnavailable as error:
        print(f"statements of packages are left out: {error}", file=sys.stderr)
        return []


def _record(*, collects: bool, packages: bool) -> None:
    if collects:
        keep_statements(in_order(distinct(collected())))
    statements = kept_statements()
    print(f"{len(statements)} statements: {dict(Counter(said.origin.split()[0] for said in statements))}", flush=True)
    RECORDED.write_bytes(record(statements).encode())
    if packages and (found := _of_packages()):
        print(f"{len(found)} statements: {dict(Counter(said.origin for said in found))}", flush=True)
        RECORDED_OF_PACKAGES.write_bytes(record(found).encode())


def _check(arguments: argparse.Namespace) -> int:
    readers = [reader for reader in READERS.values() if arguments.reader in reader.name]
    parts = [(kept_statements(), RECORDED)]
    if arguments.packages:
        parts.append((_of_packages(), RECORDED_OF_PACKAGES))
    found: Counter[str] = Counter()
    began, count = time.process_time(), 0
    for statements, path in parts:
        chosen = statements[:: arguments.every]
        count += len(chosen)
        if arguments.against is not None:
            with OtherCheckout(arguments.against) as other:
                for change in changes_against(other, chosen, readers):
                    found[change.reader] += 1
                    print(change.shown(), flush=True)
        else:
            for change in changes(read_recording(path), chosen, readers):
                found[change.reader] += 1
                print(change.shown(), flush=True)
    print(
        f"{count} statements, {len(readers)} readers, {time.process_time() - began:.1f} s: {found.total()} changed {dict(found)}"
    )
    return 1 if found else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.sql_verdicts", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    check = verbs.add_parser("check")
    check.add_argument(
        "--against",
        type=Path,
        metavar="DIRECTORY",
        help="another checkout, whose readers are asked instead of the recording",
    )
    check.add_argument("--every", type=int, default=1, metavar="N", help="every N-th statement")
    check.add_argument("--reader", default="", metavar="TEXT", help="readers whose name contains it")
    check.add_argument("--packages", action="store_true", help="statements of Debian's packages as well")
    recording = verbs.add_parser("record")
    recording.add_argument("--collect", action="store_true", help="gather the statements of the repository again")
    recording.add_argument("--packages", action="store_true", help="record those of Debian's packages as well")
    verbs.add_parser("answer")
    arguments = parser.parse_args()
    if arguments.verb == "answer":
        answer(sys.stdin, sys.stdout)
        return 0
    if arguments.verb == "record":
        _record(collects=arguments.collect, packages=arguments.packages)
        return 0
    return _check(arguments)


if __name__ == "__main__":
    sys.exit(main())
