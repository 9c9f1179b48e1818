"""What a view of a MariaDB keeps for MySQL 9.7, by the parts of `mariadb_workload`: found with real servers for the support matrix."""

import contextlib
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from deploy.servers import SERVERS, Server
from relay.view.inspect.dry_run_stops import find_stops
from relay.view.rules.mariadb.left_out import ACCOUNT
from relay.view.rules.settings import MARIADB, ViewSettings
from tests.conftest import ROOT
from tests.interop.support_words import TITLES
from tests.support.chain import wait_until
from tests.support.hex_values import hex_differences, hex_tables
from tests.support.mariadb_view import SOURCES, mariadb_chain
from tests.support.mariadb_workload import PARTS, STOPPED, Part, run_part
from tests.support.memory_file import looked_at
from tests.support.view_chain import UUID_OF_VIEW, ViewChain, executed_by

PAGE: Final = ROOT / "docs" / "SUPPORT.md"
BEGIN: Final = "<!-- views of MariaDB: written by python -m tests.interop.support_matrix --write -->"
END: Final = "<!-- views of MariaDB: end -->"
KEPT: Final = "every byte"
KEPT_BUT_ACCOUNTS: Final = "left out: empty transactions"
KEPT_BUT_KEYS: Final = "every byte of the rows"
ABSENT: Final = "-"
_ERRORS: Final = "ERRORS.md"
FORMATS: Final = ("ROW", "STATEMENT")
_SOURCES: Final = ("mariadb105", *SOURCES)
_VERSIONS: Final = {"mariadb105": (10, 5), "mariadb": (10, 11), "mariadb118": (11, 8)}
Cells = dict[tuple[str, str, str], str]
"""By part, source and format. MIXED is the one or the other, statement by statement."""
_KEPT_IN_PART: Final = {"keys over BLOB": KEPT_BUT_KEYS, "accounts": KEPT_BUT_ACCOUNTS}
_FAILED_GTID: Final = (
    "SELECT APPLYING_TRANSACTION, LAST_ERROR_NUMBER FROM performance_schema.replication_applier_status_by_worker"
    " WHERE LAST_ERROR_NUMBER <> 0"
)


def declared() -> Cells:
    """What the tests of the suite hold: `PARTS` and `STOPPED`. A part that is neither kept nor stopped is not among them."""
    cells: Cells = {}
    for source, version in _VERSIONS.items():
        for part in PARTS:
            for binlog_format in FORMATS:
                key = part.name, source, binlog_format
                if part.since > version:
                    cells[key] = ABSENT
                elif binlog_format in part.formats:
                    cells[key] = _KEPT_IN_PART.get(part.name, KEPT)
                elif part.name in STOPPED:
                    cells[key] = _stop(STOPPED[part.name])
    return cells


def found_views(told: Callable[[str], None] = lambda _: None) -> Cells:
    """The same, found out with real servers: every part on each source in each format."""
    cells: Cells = {}
    for source in _SOURCES:
        for binlog_format in FORMATS:
            told(f"{source} ({binlog_format}) -> view -> mysql97")
            with contextlib.ExitStack() as stack, tempfile.TemporaryDirectory() as scratch:
                Path(scratch).chmod(0o755)

                def servers(name: str, stack: contextlib.ExitStack = stack) -> Server:
                    return stack.enter_context(SERVERS[name]())

                stops, without = _stops(servers(source).start(server_id=1), binlog_format)
                chain = stack.enter_context(mariadb_chain(servers, source, Path(scratch) / "relay"))
                kept = _live(chain, binlog_format, [part for part in _parts(chain.source) if part.name not in stops])
            for part in PARTS:
                cell = stops.get(part.name) or kept.get(part.name, ABSENT)
                cells[part.name, source, binlog_format] = (
                    KEPT_BUT_ACCOUNTS if cell == KEPT and part.name in without else cell
                )
    return cells


def _parts(server: Server) -> Iterable[Part]:
    version = tuple(map(int, server.version.split(".")[:2]))
    return (part for part in PARTS if part.since <= version)


def _stops(source: Server, binlog_format: str) -> tuple[dict[str, str], set[str]]:
    """By part: before what a view stops, or with what error the source itself does not log it so; and the parts of which statements
    about accounts are left out."""
    files: dict[str, str] = {}
    refused: dict[str, str] = {}
    for number, part in enumerate(_parts(source)):
        source.execute_many(["FLUSH BINARY LOGS", f"CREATE DATABASE part{number}"])
        try:
            run_part(source, part, binlog_format, f"part{number}")
        except AssertionError as error:
            refused[part.name] = f"the source refuses it ({_number_of(error)})"
        source.sql("FLUSH BINARY LOGS")
        files[source.binlogs()[-2].name] = part.name
    settings = ViewSettings("gtid", "assign", UUID_OF_VIEW, flavour=MARIADB)
    found = find_stops([looked_at(path.name, path.read_bytes()) for path in source.binlogs()[:-1]], settings)
    assert found.left_out is not None
    without = {files[file] for kind, file, _, _ in found.left_out.newest if kind == ACCOUNT}
    return {files[stop.file]: _stop(stop.reason.name) for stop in reversed(found.stops)} | refused, without


def _number_of(error: BaseException) -> int:
    cause = error.__cause__
    assert cause is not None and cause.args, error
    return int(cause.args[0])


def _live(chain: ViewChain, binlog_format: str, parts: Iterable[Part]) -> dict[str, str]:
    """By part: whether a replica has the source's bytes, or the error that it stopped with."""
    replica = chain.view_replica()
    found: dict[str, str] = {}
    for number, part in enumerate(parts):
        database = f"part{number}"
        chain.source.sql(f"CREATE DATABASE {database}")
        run_part(chain.source, part, binlog_format, database)
        chain.wait_viewed()
        error = _catch_up(chain, replica)
        databases = [database] + (["maria_words"] if part.name == "collations" else [])
        differences = hex_differences(hex_tables(chain.source, databases), hex_tables(replica, databases))
        of_keys = bool(differences) and all(" has other keys" in one for one in differences)
        found[part.name] = (
            f"replicas stop ({error})" if error else KEPT_BUT_KEYS if of_keys else "differs" if differences else KEPT
        )
    return found


def _catch_up(chain: ViewChain, replica: Server) -> int:
    """Until the replica has the whole view; an error that it stopped with, whose transactions are then passed over; 0: none."""
    wanted, error = chain.gtids_of_view(), 0

    def has_all() -> bool:
        nonlocal error
        failed = replica.sql(_FAILED_GTID)
        if replica.replica_status()["sql_errno"] and failed:
            gtid, error = str(failed[0][0]), int(failed[0][1])
            replica.execute_many(
                [
                    "STOP REPLICA",
                    f"SET gtid_next = '{gtid}'",
                    "BEGIN",
                    "COMMIT",
                    "SET gtid_next = AUTOMATIC",
                    "START REPLICA",
                ]
            )
        return bool(replica.sql(f"SELECT GTID_SUBSET('{wanted}', @@GLOBAL.gtid_executed)")[0][0])

    wait_until(has_all, f"the replica has {wanted}; it has {executed_by(replica)}", 120)
    return error


def _stop(reason: str) -> str:
    return f"[`{reason}`]({_ERRORS}#view-{reason})"


def view_table(cells: Cells) -> str:
    """As Markdown."""
    columns = [(source, binlog_format) for source in _SOURCES for binlog_format in FORMATS]
    titles = [f"{TITLES[source]}, {binlog_format}" for source, binlog_format in columns]
    lines = [f"| what the source writes | {' | '.join(titles)} |", "|---" * (len(columns) + 1) + "|"]
    for part in PARTS:
        row = [cells[part.name, source, binlog_format] for source, binlog_format in columns]
        lines.append(f"| {part.name} | {' | '.join(row)} |")
    return "\n".join(lines)


def written_cells() -> Cells:
    """The table on the page, read back."""
    text = PAGE.read_text(encoding="utf-8")
    columns = [(source, binlog_format) for source in _SOURCES for binlog_format in FORMATS]
    cells: Cells = {}
    for line in text[text.index(BEGIN) : text.index(END)].splitlines()[4:]:
        if line.startswith("| "):
            name, *row = (one.strip() for one in line.strip("|").split(" | "))
            cells |= {(name, *column): cell for column, cell in zip(columns, row, strict=True)}
    return cells


def write_view_table(text: str) -> None:
    """Puts it between the marks on the page."""
    old = PAGE.read_text(encoding="utf-8")
    head, tail = old[: old.index(BEGIN) + len(BEGIN)], old[old.index(END) :]
    PAGE.write_text(f"{head}\n\n{text}\n\n{tail}", encoding="utf-8")
