"""All facts of one look at a relay: from its files, and from its own answers."""

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from protocol.errors import Malformed
from protocol.position import binlog_number
from relay.applying.applying_state import ApplyingState, text_without_state
from relay.archive.catalog.catalog import CatalogUnreadable
from relay.archive.catalog.generation_directories import generation_path
from relay.archive.storage.archive_errors import ArchiveError
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import CATALOG_NAME, FileLayer
from relay.archive_inspection.listing import damaged_places, list_generations, read_ledgers
from relay.commands.archive_command import shown_name, time_text
from relay.commands.outcome import CommandFailed
from relay.commands.view_command import configured_views
from relay.config import Config
from relay.doctor.machine_checks import relay_pid
from relay.doctor.process_sockets import process_sockets
from relay.status.asked_replicas import ReplicaQuestions, by_account, with_distance
from relay.status.http_answers import HttpAnswers, ask_http
from relay.status.running_relay import DumpTo, RelayAnswers, ask_relay
from relay.view.inspect.view_listing import view_facts
from relay.view.view_place import PlaceUnknown

_NEWEST_ROWS: Final = 5


async def relay_status(
    config: Config, known: RelayAnswers | None = None, questions: ReplicaQuestions | None = None
) -> dict[str, Any]:
    """Return the facts as in JSON. known: used as the relay's answers, instead of asking it. questions: those of earlier looks."""
    pid = await asyncio.to_thread(relay_pid, config.archive_directory)
    is_running = pid is not None
    # Another process at a port of relay.toml is not asked: a query reveals the asker, and over HTTP the token.
    sockets = await asyncio.to_thread(process_sockets, pid) if pid is not None else None
    answers, by_http = RelayAnswers(why="it does not run"), HttpAnswers()
    if is_running and sockets is not None and config.listen.port not in sockets.listening:
        answers = RelayAnswers(why=f"it does not listen at port {config.listen.port} (yet, or relay.toml was changed)")
    elif is_running:
        answers = known if known is not None else await ask_relay(config)
    if is_running:
        listens = None if sockets is None else config.http.port in sockets.listening
        by_http = await asyncio.to_thread(ask_http, config, listens)
    states = [] if by_http.overview is not None else await (questions or ReplicaQuestions()).states(config)
    status: dict[str, Any] = {
        "relay": {
            "running": is_running,
            "pid": pid,
            "asked_as": answers.asked_as,
            "not_asked": answers.why,
            "not_asked_by_http": by_http.why,
            "listen": f"{config.listen.host}:{config.listen.port}",
        },
        "source": _source(config, answers, by_http.overview),
        "memory": None if by_http.overview is None else by_http.overview.get("memory"),
    }
    status |= await asyncio.to_thread(_from_files, config, answers, by_http, states)
    status["problems"] = problems(status)
    return status


def _source(config: Config, answers: RelayAnswers, overview: dict[str, Any] | None) -> dict[str, Any]:
    told = answers.source
    behind_s = told.get("seconds_behind") if overview is None else overview["source"]["behind_s"]
    source = config.source
    address = str(source.path) if source.kind == "directory" else f"{source.host}:{source.port}"
    if told.get("host") and source.kind != "directory":
        address = f"{told['host']}:{told['port']}"
    errors = [str(told[name]) for name in ("receive_error", "publish_error") if told.get(name)]
    return {
        "address": address,
        "state": told.get("state"),
        "attached": told.get("receives") == "Yes" if told else None,
        "publishes": told.get("publishes") == "Yes" if told else None,
        "file": told.get("file") or None,
        "position": told.get("position") if told else None,
        "seconds_behind": behind_s,
        "error": "; ".join(errors) or None,
    }


def _from_files(
    config: Config, answers: RelayAnswers, by_http: HttpAnswers, states: Sequence[ApplyingState]
) -> dict[str, Any]:
    directory = config.archive_directory
    if not (directory / CATALOG_NAME).exists():
        archive = {"directory": str(directory), "files": 0, "bytes": 0, "trouble": None}
        unserved = {"replicas": [], "applied_elsewhere": [one.record() for one in states]}
        return {"archive": archive, "views": [], **unserved, "ledger": {"rows": 0, "newest": []}}
    trouble: str | None = None
    held: list[tuple[int, list[ArchivedFile]]] = []
    damaged: list[str] = []
    ledger: list[dict[str, Any]] = []
    try:
        held = list_generations(directory)
        damaged = [f"{shown_name(number, name)}:{at}" for (number, name), at in damaged_places(directory).items()]
        rows = read_ledgers(directory)
        ledger = [
            {"time": time_text(row.time), "kind": row.kind, "file": shown_name(number, row.file), "text": row.text}
            for number, row in rows
        ]
    except (CatalogUnreadable, ArchiveError, sqlite3.Error, OSError) as error:
        trouble = str(error)
    sizes = _sizes(directory, held)
    files = [file for _number, one in held for file in one]
    newest = held[-1][1][-1] if held and held[-1][1] else None
    path = None if newest is None else generation_path(directory, held[-1][0]) / newest.name
    archive = {
        "directory": str(directory),
        "files": len(files),
        "bytes": sum(size for _name, size in sizes),
        "oldest": shown_name(held[0][0], files[0].name) if files else None,
        "newest": shown_name(held[-1][0], newest.name) if newest is not None else None,
        "end": sizes[-1][1] if sizes else None,
        "last_time": time_text(newest.last_timestamp) if newest is not None and newest.last_timestamp else None,
        "free_bytes": FileLayer().free_bytes(directory),
        "damaged": damaged,
        "trouble": trouble,
    }
    return {
        "archive": archive,
        "views": _views(config) if files else [],
        **(_of_http(by_http) if by_http.overview is not None else _of_replicas(config, answers, states, sizes, path)),
        "ledger": {"rows": len(ledger), "newest": ledger[-_NEWEST_ROWS:]},
    }


def _sizes(directory: Path, held: Sequence[tuple[int, Sequence[ArchivedFile]]]) -> list[tuple[str, int]]:
    """Return name and bytes of each file. For the one that grows it is its size: the catalog has it once a second."""
    found = [(shown_name(number, file.name), file.end) for number, files in held for file in files]
    if found and not held[-1][1][-1].sealed:
        path = generation_path(directory, held[-1][0]) / held[-1][1][-1].name
        if path.exists():
            found[-1] = found[-1][0], max(found[-1][1], path.stat().st_size)
    return found


def _views(config: Config) -> list[dict[str, Any]]:
    shown = []
    try:
        for view in configured_views(config):
            facts = view_facts(view.archive, view.directory, view.settings, view.places)
            stop = facts.stop
            shown.append(
                {
                    "name": view.name,
                    "for": view.settings.target,
                    "accept": list(view.settings.accept),
                    "files": facts.files,
                    "bytes": facts.size_bytes,
                    "made_up_to": facts.made.source_text if facts.made is not None else None,
                    "behind_bytes": facts.behind_bytes,
                    "stopped": f"{stop.reason.name}: {stop.reason.message}" if stop is not None else None,
                }
            )
    except (CommandFailed, CatalogUnreadable, PlaceUnknown, sqlite3.Error, OSError) as error:
        done = {one["name"] for one in shown}
        shown += [{"name": one.name, "trouble": str(error)} for one in config.views if one.name not in done]
    return shown


def _of_replicas(
    config: Config,
    answers: RelayAnswers,
    states: Sequence[ApplyingState],
    sizes: Sequence[tuple[str, int]],
    newest: Path | None,
) -> dict[str, Any]:
    views = {account.user: account.view for account in config.accounts}
    behind = [bytes_behind(one.place, sizes) for one in states]
    measured = [with_distance(one, count, newest, views) for one, count in zip(states, behind, strict=True)]
    own, elsewhere = by_account([one.user for one in answers.replicas], measured)
    rows = [
        _replica(config, one, sizes) | _applied(state, elsewhere)
        for one, state in zip(answers.replicas, own, strict=True)
    ]
    return {"replicas": rows, "applied_elsewhere": [one.record() for one in elsewhere]}


def _applied(state: ApplyingState | None, elsewhere: Sequence[ApplyingState]) -> dict[str, Any]:
    if state is None:
        return {"applied": None, "applied_text": text_without_state(elsewhere)}
    return {"applied": state.record(), "applied_text": state.text}


def _replica(config: Config, one: DumpTo, sizes: Sequence[tuple[str, int]]) -> dict[str, Any]:
    sees_view = any(account.view is not None for account in config.accounts if account.user == one.user)
    behind = None if sees_view else bytes_behind(one.place, sizes)
    return {
        "user": one.user, "address": one.address, "state": one.state, "place": one.place, "behind_bytes": behind, "behind_s": None,
    }  # fmt: skip


def _of_http(by_http: HttpAnswers) -> dict[str, Any]:
    rows = [
        {
            "user": one["account"],
            "address": one["host"],
            "state": one["state"],
            "place": f"{one['file']}:{one['offset']}" if one["file"] else "",
            "behind_bytes": one["behind_bytes"],
            "behind_s": one["behind_s"],
            # A relay that runs since before an upgrade says nothing of it.
            "applied": one.get("applied"),
            "applied_text": one.get("applied_text", "not known: this relay does not say it"),
        }
        for one in by_http.replicas
    ]
    return {"replicas": rows, "applied_elsewhere": by_http.applied_elsewhere}


def bytes_behind(place: str, sizes: Sequence[tuple[str, int]]) -> int | None:
    """Return the bytes from FILE:OFFSET to the end. sizes: of all files, oldest first. None: the file is not among them, or among
    them twice."""
    name, _, offset = place.rpartition(":")
    found = [number for number, (held, _size) in enumerate(sizes) if held.rpartition("/")[2] == name]
    try:
        binlog_number(name)
    except Malformed:
        return None
    if len(found) != 1 or not offset.isdecimal():
        return None
    return max(0, sum(size for _name, size in sizes[found[0] :]) - int(offset))


def problems(status: dict[str, Any]) -> list[str]:
    """Return the problems that require an action; empty: there are none."""
    found = []
    relay, source, archive = status["relay"], status["source"], status["archive"]
    if not relay["running"]:
        found.append("the relay does not run")
    if source["attached"] is False:
        found.append(f"the relay does not follow its source: {source['error'] or source['state'] or 'stopped'}")
    elif source["publishes"] is False:
        found.append(f"nothing more is published: {source['error'] or 'the archive takes nothing'}")
    if archive["trouble"]:
        found.append(f"the archive cannot be read: {archive['trouble']}")
    found += [f"damaged: {place}" for place in archive.get("damaged", ())]
    applied = [*(one["applied"] for one in status["replicas"]), *status["applied_elsewhere"]]
    for one in applied:
        if one is not None and one["applies"] is False and one["error"]:
            found.append(f"replica {one['replica']} applies nothing: {one['error']}")
    for view in status["views"]:
        if view.get("stopped"):
            found.append(f"view {view['name']} is stopped: {view['stopped']}")
        if view.get("trouble"):
            found.append(f"view {view['name']}: {view['trouble']}")
    return found
