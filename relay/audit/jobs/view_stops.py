"""The places where a view of the archive would stop, for the audit `readiness`: by the rules that build views, on the driver, file by
file."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Final
from uuid import UUID

from pyspark.sql import DataFrame

from relay.archive.gaps.accepted_gap import AcceptedGap, GapUnreadable, gap_before
from relay.archive.storage.files import GAP_NAME
from relay.audit.readiness.view_checks import VIEW_STOPS, VIEW_UNKNOWN
from relay.audit.runner.audit import Audit
from relay.binlog_tables.plan.packed_store import store_of
from relay.binlog_tables.plan.series_files import SeriesFile
from relay.binlog_tables.plan.store import LocalStore, Store, plain_path
from relay.report.content import Kind, ReportTable, Section
from relay.schema_history.initial_snapshot import InitialSnapshot
from relay.view.inspect.dry_run_stops import StopsFound, find_stops
from relay.view.inspect.file_pass import LookedAtFile, up_to_fork
from relay.view.rules.mariadb.left_out import WORDS, LeftOut
from relay.view.rules.settings import MARIADB, ViewSettings
from relay.view.rules.targets.known.target import TARGETS_BY_NAME
from relay.view.stops import source_stops
from relay.view.stops.stop_reason import StopReason
from relay.view.stops.view_stop import ViewStop

# The owner of the GTIDs makes no difference.
_SETTINGS: Final = ViewSettings("NAME", "assign", UUID(int=0))
_CASES: Final = "check string, count bigint, text string, file string, position bigint, time timestamp"
_STOPS: Final = (
    "file string, position bigint, group_end bigint, time timestamp, reason string, text string, "
    "replica_error int, advice string"
)


def view_stops(audit: Audit, *, of_mariadb: bool = False) -> StopsFound:
    """Return the stops of a view with default settings, for the requested version. All files up to --until are read, because stops
    depend on how tables were defined; stops before --since are left out."""
    audit.step("Looking for what stops a view")
    since, until = audit.options.since, audit.options.until

    def is_wanted(stop: ViewStop) -> bool:
        if not stop.time:
            return True
        time = datetime.fromtimestamp(stop.time, UTC)
        return (since is None or time >= since) and (until is None or time < until)

    store = store_of(audit.options.archive)
    files: list[LookedAtFile] = []
    for sources, (_generation, group) in enumerate(groupby(audit.files_from_the_first, lambda one: one[0].generation)):
        held = list(group)
        gap = _gap_before(store, held[0][0]) if files else None
        before = _recorded(store, held[0][0])
        if isinstance(gap, AcceptedGap):
            files = _up_to_gap(files, sources - 1, gap)
        for file, end in held:
            after = source_stops.gap_in_archive(files[-1].name) if gap is not None and file is held[0][0] else None
            opened = partial(store.open, file.path)
            files.append(LookedAtFile(file.name, end, opened, after=after, sources=sources, before=before))
    settings = replace(_SETTINGS, target=_target(audit), flavour=MARIADB if of_mariadb else _SETTINGS.flavour)
    return find_stops(files, settings, is_wanted=is_wanted)


def _recorded(store: Store, file: SeriesFile) -> InitialSnapshot | None:
    """Return the relay's record beside this file's generation; it is not read over a network."""
    if not isinstance(store, LocalStore):
        return None
    return InitialSnapshot(Path(plain_path(file.path)).parent)


def _target(audit: Audit) -> str:
    return audit.options.target or _SETTINGS.target


def _gap_before(store: Store, file: SeriesFile) -> AcceptedGap | GapUnreadable | None:
    """Return the gap that was accepted before the generation that begins with `file`, where no view goes on. GapUnreadable means that
    it is unknown which; None that there is none."""
    directory = file.path.rpartition("/")[0]
    if not isinstance(store, LocalStore):
        unknown = GapUnreadable("it is not read over a network")
        return unknown if store.is_file(store.join(directory, GAP_NAME)) else None
    try:
        return gap_before(Path(plain_path(directory)))
    except GapUnreadable as error:
        return error
    except OSError as error:
        return GapUnreadable(str(error))


def _up_to_gap(files: list[LookedAtFile], source: int, gap: AcceptedGap) -> list[LookedAtFile]:
    """Return the files without what the source lost at the gap, of which no view is built. `source` is the number of the one before
    it."""
    begin = next(place for place, one in enumerate(files) if one.sources == source)
    ends = [(one, one.name.rpartition("/")[2], one.end) for one in files[begin:]]
    return [*files[:begin], *(replace(one, end=end) for one, _name, end in up_to_fork(ends, gap.fork))]


def view_cases(audit: Audit, found: StopsFound) -> DataFrame:
    """Return the stops as the cases of other checks. Those of a reason that are only counted are at the last listed place."""
    rows: list[tuple[object, ...]] = []
    listed: Counter[str] = Counter()
    last: dict[str, ViewStop] = {}
    for stop in found.stops:
        listed[stop.reason.name] += 1
        last[stop.reason.name] = stop
        rows.append((VIEW_STOPS.name, 1, _text(stop.reason), stop.file, stop.offset, _time(stop)))
    for name, stop in last.items():
        more = found.counts[name] - listed[name]
        if more:
            rows.append((VIEW_STOPS.name, more, f"{name}: more of them", stop.file, stop.offset, _time(stop)))
    rows += [(VIEW_UNKNOWN.name, 1, part.text, part.file, part.offset, None) for part in found.unread]
    return audit.frame_of(_CASES, rows)


def view_stops_frame(audit: Audit, found: StopsFound) -> DataFrame:
    """Return the stops that are listed."""
    rows = [(stop.file, stop.offset, stop.group_stop, _time(stop), *stop.reason) for stop in found.stops]
    return audit.frame_of(_STOPS, rows)


def view_section(audit: Audit, found: StopsFound) -> Section:
    """Return the stops of a view, by reason, with the ways on."""
    first: dict[str, ViewStop] = {}
    for stop in found.stops:
        first.setdefault(stop.reason.name, stop)
    rows = [
        (
            name,
            found.counts[name],
            f"{stop.file}:{stop.offset}",
            stop.reason.text,
            str(stop.reason.error or "none: it would differ in silence"),
            stop.reason.advice,
        )
        for name, stop in sorted(first.items(), key=lambda one: -found.counts[one[0]])
    ]
    title = TARGETS_BY_NAME[_target(audit)].title
    columns: dict[str, Kind] = {
        "reason": "code",
        "cases": "count",
        "first": "place",
        "of it": "code",
        "a replica's error": "text",
        "ways on": "text",
    }
    return Section(
        "What stops a view",
        f'A [[view]] with gtids = "assign" for {title}, engines = "keep" and account_statements = "skip" stops before each, by name. '
        "The rules are those that make it; engines of tables are those that the statements in these files say.",
        tables=[ReportTable("Reasons", columns, rows)],
    )


def left_out_section(left_out: LeftOut) -> Section:
    """Return what a view of a MariaDB withholds from its replicas, and what they get as statements."""
    record = left_out.record()
    counts = [(words, left_out.counts[kind]) for kind, words in WORDS.items() if left_out.counts[kind]]
    newest = [(one["what"], f"{one['file']}:{one['position']}") for one in record["newest"]]
    text = "Replicas have the GTIDs of these transactions, and not all that they do. Make accounts by hand; what MySQL does not have "
    text += "(sequences, unique keys over texts of any length) wants a decision before the cut-over."
    if left_out.by_statement:
        file, offset = left_out.first_statement
        text += (
            f" {left_out.by_statement} transactions change rows by statements, the first at {file}:{offset}: replicas run them, and "
            "a function of MySQL may make something else of its arguments. With binlog_format = ROW at the source they get the rows."
        )
    columns: dict[str, Kind] = {"left out": "text", "transactions": "count"}
    tables = [ReportTable("Kinds", columns, counts)] if counts else []
    if newest:
        tables.append(ReportTable("The last ones", {"what": "code", "where": "code"}, newest))
    return Section("What a view does not keep", text, tables=tables)


def _text(reason: StopReason) -> str:
    error = f" (error {reason.error})" if reason.error else ""
    return f"{reason.name}{error}: {reason.text}"


def _time(stop: ViewStop) -> datetime | None:
    return datetime.fromtimestamp(stop.time, UTC) if stop.time else None
