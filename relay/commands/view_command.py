"""`binlog-relay view list | find | check | verify`: tables on a terminal, plain lines, or JSON. The relay may be running."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

from protocol.errors import Malformed
from protocol.gtid.gtid_set import GtidSet
from protocol.gtid.mariadb import GtidPosition
from relay.archive.catalog.catalog import Catalog, CatalogUnreadable
from relay.archive.storage.archive_errors import ArchiveConflict
from relay.archive.storage.archived_file import ArchivedFile, SourceIdentity
from relay.archive.storage.files import CATALOG_NAME
from relay.commands.archive_command import archive_failures, print_table, time_text
from relay.commands.arguments import binlog_place
from relay.commands.outcome import CommandFailed
from relay.commands.progress import bytes_progress
from relay.config import Config, ViewSection, settings_of_view, view_settings
from relay.config.text.problems import Wrong
from relay.row_format.row_replica import logged_format
from relay.view.generations.view_generations import MadeGeneration, made_generations
from relay.view.inspect.made_again import made_again
from relay.view.inspect.named_view import NamedView, is_mariadb_position, named_view
from relay.view.inspect.view_comparison import ViewDifference, differences
from relay.view.inspect.view_listing import ViewFacts, view_facts
from relay.view.inspect.view_outlook import ViewOutlook, view_outlook
from relay.view.rules.kept_settings import check_unchanged
from relay.view.rules.settings import MARIADB, ViewSettings
from relay.view.stops.view_stop import ViewStop
from relay.view.view_place import InsideTransaction, PlaceUnknown, ViewPlace


def configured_views(config: Config) -> list[NamedView]:
    """Return all views of relay.toml. Raises: CommandFailed."""
    return [_configured(config, section) for section in config.views]


def configured_view(config: Config, name: str, *, may_differ: bool = False) -> NamedView:
    """Return the one of that name. may_differ: also if its files were built with other settings. Raises: CommandFailed."""
    for section in config.views:
        if section.name == name:
            view = _configured(config, section)
            trouble = None if may_differ else _changed(view)
            if trouble is not None:
                raise CommandFailed(trouble)
            return view
    known = ", ".join(section.name for section in config.views)
    raise CommandFailed(f"There is no [[view]] {name!r} in the configuration: it has {known or 'none'}.")


def next_uuid(config: Config, name: str) -> UUID:
    """Return the uuid of the GTIDs that the view would have if it were rebuilt. Raises: CommandFailed."""
    section = next(section for section in config.views if section.name == name)
    return _settings(config.archive_directory, section, lambda source: view_settings(section, source)).uuid


def _changed(view: NamedView) -> str | None:
    """Return how relay.toml differs from the settings that the view's files were built with. None: it does not."""
    with archive_failures(view.archive):
        try:
            check_unchanged(view.directory, view.settings)
        except ArchiveConflict as error:
            return str(error)
    return None


def _configured(config: Config, section: ViewSection) -> NamedView:
    archive = config.archive_directory
    settings = _settings(archive, section, lambda source: settings_of_view(section, source, archive))
    with archive_failures(archive):
        return named_view(archive, settings)


def _settings(archive: Path, section: ViewSection, make: Callable[[SourceIdentity], ViewSettings]) -> ViewSettings:
    with archive_failures(archive):
        source = _first_source(archive)
        if source is None:
            text = f"The archive in {archive} has no source yet, and views are made of it: let the relay reach its source first."
            raise CommandFailed(text)
        try:
            return make(source)
        except Wrong as wrong:
            raise CommandFailed(f"[[view]] {section.name}: {wrong.what}. {wrong.advice}.") from None


def _first_source(archive: Path) -> SourceIdentity | None:
    """Return the source that the archive began with."""
    catalog = Catalog.open_read_only(archive / CATALOG_NAME)
    try:
        identity, files = catalog.identity(), catalog.files()
    finally:
        catalog.close()
    if identity is not None or not files:
        return identity
    file = files[0]  # a directory of binlogs says no more
    return SourceIdentity(file.flavour, file.server_version, file.server_id, None)


def list_views(views: Sequence[NamedView], *, as_json: bool) -> None:
    """Print one line a view, for each stopped one the reason and the ways to continue, and whether the source logs statements.

    Raises: CommandFailed.
    """
    facts = []
    logged = logged_format(views[0].archive) if views else None
    changed = {view.name: trouble for view in views if (trouble := _changed(view)) is not None}
    for view in views:
        with view_failures(view):
            facts.append(view_facts(view.archive, view.directory, view.settings, view.places))
    if as_json:
        for one in facts:
            record = _facts_record(one) | {"not_served": changed.get(one.settings.name)}
            record["source_binlog_format"] = logged.binlog_format if logged is not None else None
            sys.stdout.write(json.dumps(record) + "\n")
        return
    if not facts and sys.stdout.isatty():
        sys.stdout.write("There is no [[view]] in the configuration.\n")
        return
    headings = ("view", "gtids", "uuid", "for", "files", "bytes", "made up to", "in the view", "behind", "state")
    print_table(headings, [_facts_cells(one, changed) for one in facts], numbers=(4, 5, 8))
    for name, trouble in changed.items():
        sys.stdout.write(f"{name} is not served: {trouble}\n")
    for one in facts:
        if one.stop is not None:
            sys.stdout.write(f"{one.settings.name} is stopped: {stop_text(one.stop)}\n")
        if one.waits is not None and one.waits.groups:
            sys.stdout.write(f"{one.settings.name}, of {one.waits.groups} transactions: {one.waits.told()}\n")
        if one.left_out is not None and (text := one.left_out.told()):
            sys.stdout.write(f"{one.settings.name}, {text}\n")
    if logged is not None and logged.logs_statements:
        sys.stdout.write(f"The source: {logged.warning()}. {logged.answer()}\n")


def find_place(view: NamedView, *, source: str | None, position: str | None, gtid: str | None, as_json: bool) -> None:
    """Print the same place in the source, in the view, and by GTID. Raises: CommandFailed, also for a place that does not exist."""
    if sum(given is not None for given in (source, position, gtid)) != 1:
        raise CommandFailed("Write one of --source, --position and --gtid.")
    with view_failures(view):
        place = _wanted(view, source, position, gtid)
        executed = view.executed(place)
    if as_json:
        sys.stdout.write(json.dumps(place_record(view, place, executed)) + "\n")
        return
    row = (place.source_text, place.view_text, view.newest_gtid(place.gno), executed.line)
    print_table(("source", "view", "newest assigned", "executed"), [row], numbers=())


def verify_view(view: NamedView, *, as_json: bool) -> int:
    """Rebuild the view in memory, and print the first difference of each file; return how many. Raises: CommandFailed."""
    count = left = 0
    files: list[ArchivedFile] = []
    with view_failures(view):
        if not view.is_made:
            raise PlaceUnknown(f"View {view.name} is not made yet: there is nothing to compare.")
        for made in made_generations(view.archive, view.directory):
            again = made_again(view, made)
            files += again.files
            left += again.left
            for one in differences(made.directory, again.files, again):
                count += 1
                record = _difference_record(view.name, made, one)
                sys.stdout.write(json.dumps(record) if as_json else _difference_text(made, one))
                sys.stdout.write("\n")
    if as_json:
        return count
    size = sum(file.end for file in files)
    fine = f"View {view.name} is what the archive gives: {len(files)} files, {size} bytes.\n"
    sys.stdout.write(f"{count} files of view {view.name} are not what the archive gives.\n" if count else fine)
    if left:
        sys.stdout.write(f"{left} older files were not compared: what they were made from was purged.\n")
    return count


def check_view(view: NamedView, *, as_json: bool) -> int:
    """Print each stop, and the ways to continue; return their number, including what could not be checked. Raises: CommandFailed."""
    with view_failures(view):
        outlook = view_outlook(view, lambda size: bytes_progress("check", size))
    found = outlook.found
    if as_json:
        for stop in found.stops:
            sys.stdout.write(json.dumps(_stop_record(view.name, stop)) + "\n")
        for part in found.unread:
            record = {"view": view.name, "file": part.file, "position": part.offset, "not_looked_at": part.text}
            sys.stdout.write(json.dumps(record) + "\n")
        sys.stdout.write(json.dumps(_outlook_record(view.name, outlook)) + "\n")
        return found.total + len(found.unread)
    if found.stops:
        headings = ("place", "time", "reason", "a replica's error", "what")
        print_table(headings, [_stop_cells(stop) for stop in found.stops], numbers=(3,))
    for part in found.unread:
        sys.stdout.write(f"{part.file} was not looked at from {part.offset} on: {part.text}\n")
    if found.not_listed:
        sys.stdout.write(f"{found.not_listed} more are not listed. ")
        sys.stdout.write("All: " + ", ".join(f"{name} {count}" for name, count in found.counts.most_common()) + ".\n")
    for name, advice in sorted({(stop.reason.name, stop.reason.advice) for stop in found.stops}):
        sys.stdout.write(f"Ways on at {name}: {advice}\n")
    sys.stdout.write(_outlook_text(view, outlook) + "\n")
    if found.waits.groups:
        sys.stdout.write(f"Of {found.waits.groups} transactions: {found.waits.told()}.\n")
    if found.left_out is not None and (text := found.left_out.told()):
        sys.stdout.write(f"Transactions, since the view began: {text}.\n")
    return found.total + len(found.unread)


@contextmanager
def view_failures(view: NamedView) -> Iterator[None]:
    """Add the view's name to errors about it. Raises: CommandFailed; other errors as they are."""
    with archive_failures(view.archive):
        try:
            yield
        except InsideTransaction as inside:
            raise CommandFailed(view.inside_text(inside), inside.exit_code) from None
        except CatalogUnreadable as error:  # the mirror's was read before, to determine the view's settings
            text = f"View {view.name}, {view.directory}: {error} The relay's next start makes it again, or 'view rebuild' all of it."
            raise CommandFailed(text, error.exit_code) from error


def place_of(view: NamedView, option: str, text: str) -> ViewPlace:
    """Return a place of the source, FILE:POSITION, or of MariaDB also its gtid_slave_pos.

    Raises: CommandFailed; InsideTransaction; PlaceUnknown; CatalogUnreadable; OSError.
    """
    if view.settings.flavour == MARIADB and is_mariadb_position(text):
        try:
            return view.behind_position(GtidPosition.from_text(text))
        except Malformed as error:
            raise CommandFailed(f"{option} {text}: {error}.") from None
    return view.of_source(binlog_place(option, text))


def place_record(view: NamedView, place: ViewPlace, executed: GtidSet) -> dict[str, object]:
    """Return the place for JSON."""
    return {
        "view": view.name,
        "source_generation": place.source_generation,
        "source_file": place.source.file,
        "source_position": place.source.offset,
        "view_generation": place.generation,
        "view_file": place.view.file,
        "view_position": place.view.offset,
        "newest_assigned": view.newest_gtid(place.gno) or None,
        "executed": executed.line,
    }


def stop_text(stop: ViewStop) -> str:
    """Return the place, the reason, the time and the ways to continue."""
    error = f" (a replica's error {stop.reason.error})" if stop.reason.error else ""
    place = f"{stop.file}:{stop.offset}: " if stop.file else ""
    return f"{place}{stop.reason.name}{error}: {stop.reason.message} Since {time_text(stop.time)}."


def _wanted(view: NamedView, source: str | None, position: str | None, gtid: str | None) -> ViewPlace:
    if source is not None:
        return place_of(view, "--source", source)
    if position is not None:
        return view.of_view(binlog_place("--position", position))
    try:
        return view.behind_text(gtid or "")
    except Malformed as error:
        ways = "uuid:number" if view.settings.flavour != MARIADB else "uuid:number, or a gtid_slave_pos such as 0-1-100"
        raise CommandFailed(f"--gtid {gtid}: {error}. Write one transaction: {ways}.") from None


def _facts_cells(facts: ViewFacts, changed: Mapping[str, str]) -> tuple[str, ...]:
    """Return the cells of a view. changed: views whose files were built with other settings."""
    settings, made = facts.settings, facts.made
    state = facts.stop.reason.name if facts.stop is not None else "runs with the relay"
    if settings.accept:
        state += f", accepts {', '.join(settings.accept)}"
    return (
        settings.name,
        settings.gtids,
        str(settings.uuid) if settings.gtids == "assign" else "",
        settings.target,
        str(facts.files),
        str(facts.size_bytes),
        made.source_text if made is not None else "",
        made.view_text if made is not None else "",
        str(facts.behind_bytes),
        state if settings.name not in changed else "other settings",
    )


def _facts_record(facts: ViewFacts) -> dict[str, object]:
    settings, made, stop = facts.settings, facts.made, facts.stop
    return {
        "view": settings.name,
        "gtids": settings.gtids,
        "uuid": str(settings.uuid) if settings.gtids == "assign" else None,
        "for": settings.target,
        "accept": list(settings.accept),
        "files": facts.files,
        "bytes": facts.size_bytes,
        "source_generation": made.source_generation if made is not None else None,
        "source_file": made.source.file if made is not None else None,
        "source_position": made.source.offset if made is not None else None,
        "view_generation": made.generation if made is not None else None,
        "view_file": made.view.file if made is not None else None,
        "view_position": made.view.offset if made is not None else None,
        "newest_assigned": f"{settings.uuid}:{made.gno}" if made is not None and made.gno else None,
        "behind_bytes": facts.behind_bytes,
        "dependencies": facts.waits.record() if facts.waits is not None else None,
        "not_kept": facts.left_out.record() if facts.left_out is not None else None,
        "stop": None
        if stop is None
        else {
            "generation": stop.generation,
            "file": stop.file,
            "position": stop.offset,
            **stop.reason._asdict(),
            "since": time_text(stop.time),
        },
    }


def _difference_text(made: MadeGeneration, one: ViewDifference) -> str:
    place = ViewPlace(one.source or one.view, one.view, 0, made.source_number, made.number)
    made_from = "" if one.source is None else f" (made from {place.source_text} on)"
    return f"{place.view_text}{made_from}: {one.what}"


def _difference_record(name: str, made: MadeGeneration, one: ViewDifference) -> dict[str, object]:
    return {
        "view": name,
        "generation": made.number,
        "file": one.view.file,
        "offset": one.view.offset,
        "source_offset": one.source.offset if one.source is not None else None,
        "text": one.what,
    }


def _outlook_text(view: NamedView, outlook: ViewOutlook) -> str:
    found = outlook.found
    if outlook.begin is None:
        return f"The archive has nothing that view {view.name} could be made from."
    looked = f"{outlook.size_bytes} bytes were looked at, {outlook.begin} to {outlook.end}."
    if found.total:
        return f"View {view.name} will stop {found.total} times, each time until somebody decides. {looked}"
    what = "Nothing" if not found.unread else "Nothing of what could be read"
    return f"{what} stops view {view.name}. {looked}"


def _stop_cells(stop: ViewStop) -> tuple[str, ...]:
    reason = stop.reason
    when = time_text(stop.time) if stop.time else ""
    return f"{stop.file}:{stop.offset}", when, reason.name, str(reason.error or ""), reason.text


def _stop_record(name: str, stop: ViewStop) -> dict[str, object]:
    reason = stop.reason
    return {
        "view": name,
        "file": stop.file,
        "position": stop.offset,
        "group_end": stop.group_stop,
        "time": time_text(stop.time) if stop.time else None,
        "reason": reason.name,
        "text": reason.text,
        "replica_error": reason.error or None,
        "advice": reason.advice,
    }


def _outlook_record(name: str, outlook: ViewOutlook) -> dict[str, object]:
    return {
        "view": name,
        "looked_at_from": str(outlook.begin) if outlook.begin is not None else None,
        "looked_at_to": str(outlook.end) if outlook.end is not None else None,
        "stops": outlook.found.total,
        "by_reason": dict(outlook.found.counts),
        "dependencies": outlook.found.waits.record() if outlook.found.waits.groups else None,
        "not_kept": outlook.found.left_out.record() if outlook.found.left_out is not None else None,
    }
