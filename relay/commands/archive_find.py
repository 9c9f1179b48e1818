"""`binlog-relay archive find --gtid … | --time …`: one line with file, position and transaction, or JSON."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

from protocol.errors import ExitCode, Malformed
from protocol.gtid.mariadb import DomainGtid
from protocol.gtid.mysql_gtid import MysqlGtid
from relay.archive.catalog.generation_directories import FIRST, begun_generations
from relay.archive_inspection.transaction_search import TransactionPlace, find_gtid, find_time
from relay.commands.archive_command import archive_failures, print_table, shown_name, time_text
from relay.commands.arguments import timestamp
from relay.commands.outcome import CommandFailed


def find(directory: Path, *, gtid: str | None, time: str | None, as_json: bool) -> None:
    """Print the place of the transaction. The relay may be running. Raises: CommandFailed, also when there is none."""
    if (gtid is None) == (time is None):
        raise CommandFailed("Write either --gtid or --time.")
    with archive_failures(directory):
        if gtid is not None:
            wanted = _parsed(gtid)
            number, place = _first(directory, lambda path: find_gtid(path, wanted))
            if place is None:
                raise CommandFailed(f"The archive does not hold transaction {gtid}.", ExitCode.FINDINGS)
        else:
            since = timestamp("--time", time or "")
            number, place = _first(directory, lambda path: find_time(path, since))
            if place is None:
                raise CommandFailed(f"No transaction in the archive began at {time} or later.", ExitCode.FINDINGS)
    if as_json:
        sys.stdout.write(json.dumps(_record(number, place)) + "\n")
        return
    row = (
        shown_name(number, place.file),
        str(place.start),
        str(place.end),
        place.gtid or "anonymous",
        time_text(place.timestamp),
    )
    print_table(("file", "position", "end", "transaction", "time"), [row], numbers=(1, 2))


def _first(directory: Path, find_in: Callable[[Path], TransactionPlace | None]) -> tuple[int, TransactionPlace | None]:
    """Return the oldest generation that has it, and the place."""
    for number, path in begun_generations(directory):
        place = find_in(path)
        if place is not None:
            return number, place
    return FIRST, None


def _parsed(text: str) -> MysqlGtid | DomainGtid:
    try:
        return MysqlGtid.from_text(text) if ":" in text else DomainGtid.from_text(text)
    except Malformed as error:
        message = f"--gtid {text}: {error}. Write one transaction: uuid:number, uuid:tag:number or 0-1-100."
        raise CommandFailed(message) from None


def _record(number: int, place: TransactionPlace) -> dict[str, object]:
    return {
        "file": place.file,
        "generation": number,
        "position": place.start,
        "end": place.end,
        "gtid": place.gtid,
        "time": time_text(place.timestamp),
    }
