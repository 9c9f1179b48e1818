"""`binlog-relay archive purge --dry-run`: what `[retention]` would remove now, and what keeps the rest; from the files alone."""

import json
import sqlite3
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from protocol.position import binlog_number
from relay.archive.storage.archive_errors import ArchiveError
from relay.archive.storage.files import CATALOG_NAME, FileLayer
from relay.archive_inspection.listing import list_generations
from relay.commands.archive_command import archive_failures, print_table, shown_name, time_text
from relay.commands.outcome import CommandFailed
from relay.config import Config
from relay.retention.decision import ArchiveFacts, HeldFile, Hold, HolderKind, RetentionDecision, RetentionFacts, decide
from relay.retention.file_times import NumberedFiles, held_files_of, newest_event_time
from relay.retention.known_replicas import KnownReplicas
from relay.retention.replicas_file import read_known_replicas
from relay.retention.retention_holds import keeps_files, replica_holds, view_text
from relay.retention.retention_limits import RetentionLimits
from relay.retention.retention_texts import held_back_text, limit_text, size_text
from relay.view.inspect.named_view import NamedView
from relay.view.inspect.standing_stop import standing_stop
from relay.view.rules.kept_settings import view_directory
from relay.view.view_place import PlaceUnknown


class PreviewLine(NamedTuple):
    """One file. archive: "" for the mirror, else the view. goes: whether it would be removed; why: the reason, also for a file that
    stays."""

    archive: str
    file: HeldFile
    goes: bool
    why: str


def preview_purge(config: Config, views: Sequence[NamedView], *, as_json: bool) -> None:
    """Print a line a file, and the limits that cannot be kept. The relay may be running. Blocking. Raises: CommandFailed."""
    limits = RetentionLimits.of(config.retention)
    if not limits.section.removes:
        text = "There is no [retention] in the configuration, so the relay removes nothing by itself. PURGE BINARY LOGS does."
        raise CommandFailed(text)
    with archive_failures(config.archive_directory):
        try:
            replicas = read_known_replicas(FileLayer(), config.archive_directory) or KnownReplicas()
        except (OSError, ValueError) as error:
            text = f"{config.archive_directory / 'known-replicas.json'} cannot be read: {error}."
            raise CommandFailed(text) from error
        facts = facts_of_disk(config.archive_directory, views, replicas, limits)
    decision = decide(facts, limits)
    lines = list(_lines(facts, decision, limits))
    if as_json:
        for line in lines:
            sys.stdout.write(json.dumps(_record(line)) + "\n")
        return
    headings = ("archive", "file", "bytes", "newest event", "retention", "why")
    rows = [
        (
            line.archive or "-",
            shown_name(line.file.generation, line.file.name),
            str(line.file.size_bytes),
            time_text(int(line.file.time)),
            "goes" if line.goes else "stays",
            line.why,
        )
        for line in lines
    ]
    print_table(headings, rows, numbers=(2,))
    going = [line for line in lines if line.goes]
    size = size_text(sum(line.file.size_bytes for line in going))
    sys.stdout.write(f"{len(going)} of {len(lines)} files would go now, {size}. Nothing was removed.\n")
    for one in decision.held_back:
        sys.stdout.write(f"{held_back_text(one, limits)}\n")
    for replica in replicas:
        if not keeps_files(replica, limits):
            sys.stdout.write(f"{replica.named} keeps nothing any more.\n")


def facts_of_disk(
    directory: Path, views: Sequence[NamedView], replicas: KnownReplicas, limits: RetentionLimits
) -> RetentionFacts:
    """Return the facts as they are on the disk, with the replicas as the relay knew them last. Blocking.

    Raises: CatalogUnreadable; OSError; sqlite3.Error.
    """
    mirror = list_generations(directory)
    now = time.time()
    holds = [_view_hold(directory, view, limits) for view in views]
    archives = [_facts("", mirror, now, [hold for hold in holds if hold is not None], replicas, limits)]
    for view in views:
        own = view_directory(directory, view.name)
        if (own / CATALOG_NAME).exists():
            archives.append(_facts(view.name, list_generations(own), now, [], replicas, limits))
    free = FileLayer().free_bytes(directory) if limits.min_free_bytes is not None else None
    return RetentionFacts(archives, min(now, newest_event_time(mirror)), free)


def _facts(
    name: str,
    generations: NumberedFiles,
    now: float,
    holds: list[Hold],
    replicas: KnownReplicas,
    limits: RetentionLimits,
) -> ArchiveFacts:
    files = held_files_of(generations, now)
    return ArchiveFacts(name, files, (*holds, *replica_holds(name, files, replicas, limits)))


def _view_hold(directory: Path, view: NamedView, limits: RetentionLimits) -> Hold | None:
    """Return what the view must still be built from; None: it has stopped and keeps nothing."""
    try:
        place = view.places.end() if view.is_made else None
        stop = standing_stop(directory, view.directory, view.name, place) if view.is_made else None
    except (ArchiveError, PlaceUnknown, OSError, sqlite3.Error, ValueError):
        place, stop = None, None
    if stop is not None and not limits.section.keep_for_views:
        return None
    stands = f", and stands stopped ({stop.reason.name})" if stop is not None else ""
    if place is None:
        return Hold(HolderKind.VIEW, view_text(view.name, stands), (0, 0))
    number = binlog_number(place.source.file)
    return Hold(HolderKind.VIEW, view_text(view.name, stands), (place.source_generation, number))


def _lines(facts: RetentionFacts, decision: RetentionDecision, limits: RetentionLimits) -> Iterator[PreviewLine]:
    going = {(one.archive, one.file.place): one.limit for one in decision.removals}
    for archive in facts.archives:
        first = min(archive.holds, key=lambda hold: hold.place, default=None)
        for file in archive.files:
            limit = going.get((archive.name, file.place))
            if limit is not None:
                why = limit_text(limit, limits)
            elif first is not None and file.place >= first.place:
                why = first.who
            elif file is archive.files[-1]:
                why = "it is the newest file"
            else:
                why = "within the limits"
            yield PreviewLine(archive.name, file, limit is not None, why)


def _record(line: PreviewLine) -> dict[str, object]:
    return {
        "archive": line.archive or None,
        "generation": line.file.generation,
        "file": line.file.name,
        "bytes": line.file.size_bytes,
        "newest_event": int(line.file.time),
        "goes": line.goes,
        "why": line.why,
    }
