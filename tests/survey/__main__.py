"""The commands `python -m tests.survey run --source SERIES --target SERIES`, `… write` and `… page`."""

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.survey import page, running, writing


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.survey", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    run = verbs.add_parser("run", help="ask two servers for every construct and write what differs")
    run.add_argument("--print", action="store_true", help="print the rows and write no file")
    run.add_argument("--only", action="append", default=[], metavar="CONSTRUCT", help="this one; no file is written")
    run.add_argument("--kinds", default="esc", metavar="LETTERS", help="expressions, stores and conversions, clauses")
    run.add_argument("--arities", type=int, nargs="+", default=[0, 1, 2, 3, 4], metavar="N", help="of constructs")
    run.add_argument("--each", type=int, default=0, metavar="N", help="expressions a combination of two classes")
    write = verbs.add_parser("write", help="write the data from what several runs have printed")
    write.add_argument("printed", type=Path, nargs="+", metavar="FILE")
    for verb in (run, write):
        verb.add_argument("--source", required=True, choices=list(running.SERVERS_BY_SERIES))
        verb.add_argument("--target", required=True, choices=list(running.SERVERS_BY_SERIES))
    verbs.add_parser("page", help="write the table of docs/DIFFERENCES.md from the data")
    arguments = parser.parse_args()
    if arguments.verb == "page":
        page.write()
    elif arguments.verb == "write":
        printed = (path.read_text("utf-8").split("\n") for path in arguments.printed)
        print(writing.write(arguments.source, arguments.target, printed))
    else:
        lines = _run(arguments)
        if arguments.print or arguments.only:
            for line in lines:
                print(line, flush=True)
        else:
            print(writing.write(arguments.source, arguments.target, [lines]))
    return 0


def _run(arguments: argparse.Namespace) -> Iterator[str]:
    began = time.monotonic()
    asked_for = running.Asked(tuple(arguments.only), tuple(arguments.arities), arguments.kinds, arguments.each)
    for found in running.run(arguments.source, arguments.target, asked_for):
        print(
            f"{time.monotonic() - began:7.1f} s  {found.name}: {found.asked} expressions, {len(found.rows)} rows",
            file=sys.stderr,
        )
        yield f"# {found.asked} expressions"
        yield from found.rows
        yield from found.results


if __name__ == "__main__":
    sys.exit(main())
