"""The reasons why a view does not continue from one place of the archive to the next: files, sources, GTIDs, numbers, disks."""

from typing import Final
from uuid import UUID

from protocol.position import Position
from relay.view.stops.stop_reason import StopReason

_NEW_VIEW: Final = (
    "Replicas of the view are served up to there. Add another [[view]] with a start in the files after it, its `next` above "
    "the numbers of this one, and give it new replicas, or these with a new copy of the data."
)
_OTHER_UUID: Final = "Add another [[view]] with another uuid, and seed its replicas again."
_RETRIED: Final = "The relay retries every 10 seconds."
EXECUTED_GTIDS_MISSING: Final = "executed_gtids_missing"


def file_missing(name: str) -> StopReason:
    """The next file is not in the archive."""
    text = f"{name} is no longer in the archive, or not yet"
    return StopReason("source_file_missing", text, 0, "Rebuild the view with a start that the archive still has.")


def start_inside(view: str, start: Position, before: int, after: int | None) -> StopReason:
    """A view's start is not between two transactions. `before` and `after` are the nearest such offsets; None: not known yet."""
    near = f"{start.file}:{before} before, {'none after yet' if after is None else f'{start.file}:{after} after'}"
    text = f"start = {start} is inside a transaction: the nearest good positions are {near}"
    advice = (
        f"Write one of them into start of [[view]] {view}, with the number that follows there: the relay that assigns "
        "numbers prints it "
        f'with "binlog-relay view find {view} --source {start.file}:{before}". Then restart this relay.'
    )
    return StopReason("start_inside_transaction", text, 0, advice)


def start_file_missing(view: str, start: Position, oldest: str) -> StopReason:
    """The archive has no file of that name. `oldest` is its oldest file's name."""
    why = f"{start.file}, with which the view begins, is not in the archive yet; its oldest file is {oldest}"
    return start_not_archived(view, start, why)


def start_not_archived(view: str, start: Position, why: str) -> StopReason:
    """The archive does not have a view's start. `why` says what it has instead, which stays the same."""
    text = f"start = {start}: {why}"
    advice = (
        f"If it still arrives, the view begins by itself. Otherwise correct start of [[view]] {view} and restart the "
        f'relay; "binlog-relay archive list" shows what is archived.'
    )
    return StopReason("start_not_archived", text, 0, advice)


def source_changed(name: str, why: str = "") -> StopReason:
    """After the file `name` the files of another source begin. `why` is the reason why replicas' transactions of it are unknown."""
    text = f"another source is followed since the end of {name}, and which of its transactions the view has already is not known"
    return StopReason("source_changed", f"{text}: {why}" if why else text, 0, _NEW_VIEW)


def without_gtids(name: str) -> StopReason:
    """The source changes, and replicas of the view do not follow by GTID."""
    return source_changed(name, "the view gives transactions no GTIDs")


def numbers_assigned(name: str) -> StopReason:
    """The source changes, and it may have the same transactions under other GTIDs than the view."""
    why = "the view gave numbers to transactions that had no GTIDs, and under which ones the other source may have them"
    return source_changed(name, f"{why} is not known")


def transaction_without_gtid() -> StopReason:
    """Another source's transaction has no GTID."""
    return StopReason(
        "source_changed",
        "another source is followed, and it wrote a transaction without a GTID: whether replicas of the view have it "
        "already is not known",
        0,
        "Look at it with mysqlbinlog: where replicas have it, or you apply it by hand, `view skip` leaves it out. Or "
        "copy the data to the "
        "replicas again, for a new [[view]] with a start after it.",
    )


def definition_of_former_source(table: str) -> StopReason:
    """Another source's binlogs need not contain the definition of `table`."""
    return StopReason(
        "source_changed",
        f"another source is followed, and what its rows of {table} are on the replicas (VECTOR, JSON) is known by definitions in "
        "the binlogs of the former source alone",
        0,
        "Replicas of the view are served up to there. Add another [[view]] with a start in the files after it, and give it new "
        "replicas with a new copy of the data, taken after the change.",
    )


def gap_in_archive(name: str) -> StopReason:
    """A gap follows what is served of the file `name`."""
    text = (
        f"after {name} the archive has a gap that was accepted: a replica of the view would miss the transactions in it"
    )
    return StopReason("gap_in_archive", text, 0, _NEW_VIEW)


def uuid_in_use(uuid: UUID) -> StopReason:
    """GTIDs of the view's uuid are the source's too. It cannot be skipped."""
    text = (
        f"the view assigns GTIDs of {uuid}, and the source has its own GTIDs of this uuid: replicas would skip one "
        "transaction as another"
    )
    return StopReason("uuid_in_use", text, 0, _OTHER_UUID)


def executed_gtids_missing() -> StopReason:
    """The source's files no longer contain which of its GTIDs were executed before. It cannot be skipped."""
    text = (
        "the source was restarted without GTIDs, and its files from here on do not contain the GTIDs executed before: a replica "
        "that is seeded after this place would get those transactions a second time"
    )
    advice = "Add another [[view]] that starts at this file, and seed its replicas again."
    return StopReason(EXECUTED_GTIDS_MISSING, text, 0, advice)


def gtid_number_unknown(text: str, advice: str) -> StopReason:
    """The number of the view's first transaction may be another transaction's."""
    return StopReason("gtid_number_unknown", text, 0, advice)


def format_unsupported(text: str) -> StopReason:
    """The head of a file cannot be read, or is of another kind of server."""
    return StopReason("format_unsupported", text, 0, "`view skip` leaves it out.")


def boundary_violation() -> StopReason:
    """An event begins no transaction."""
    return StopReason("boundary_violation", "an event here cannot begin a transaction", 0, "`view skip` leaves it out.")


def archive_damaged(what: str, advice: str) -> StopReason:
    """The source's file is damaged in the archive."""
    return StopReason("archive_damaged", what, 0, advice)


def archive_unreadable(text: str) -> StopReason:
    """The source's file cannot be read."""
    return StopReason("archive_unreadable", text, 0, _RETRIED)


def write_failed(what: str, advice: str) -> StopReason:
    """The view's files cannot be written."""
    return StopReason("view_write_failed", what, 0, advice)


def view_unreadable(what: str, advice: str) -> StopReason:
    """The view's files cannot be read."""
    return StopReason("view_unreadable", what, 0, advice)


def retried(advice: str) -> str:
    """Return the advice with the note that the relay retries by itself."""
    return f"{advice} {_RETRIED}".lstrip()


def view_differs(view: str, what: str) -> StopReason:
    """The view's own files are not what the archive results in."""
    advice = f'Run "binlog-relay view rebuild {view}" with the relay stopped. Its replicas continue where what they have is the same.'
    return StopReason("view_differs", f"{what}.", 0, advice)


def map_lost(view: str, file: str) -> StopReason:
    """The map of the view's newest file is lost, and the files from which it is rebuilt are purged."""
    advice = f'Run "binlog-relay view rebuild {view}" with the relay stopped: the view is rebuilt.'
    return StopReason("view_map_lost", f"{file}.map of the view is missing or damaged", 0, advice)


def internal_error(
    view: str, error: Exception, where: str, longest_pause_s: float, *, is_in_transaction: bool
) -> StopReason:
    """An unforeseen exception occurred at `where` in the code. `longest_pause_s` is that between two attempts."""
    advice = (
        "This is a bug in binlog-relay: please report it, with the line task_failed of the log. The relay retries at most "
        f"{longest_pause_s / 60:.0f} minutes later."
    )
    if is_in_transaction:
        advice += f" binlog-relay view skip {view} leaves the transaction out."
    return StopReason("internal_error", f"{type(error).__name__}: {error}{where}", 0, advice)
