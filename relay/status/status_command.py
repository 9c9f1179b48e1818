"""`binlog-relay status`: prints one look, or one every few seconds."""

import asyncio
import json
import logging
import sys
import time
from collections.abc import Iterator
from typing import Any, Final

import structlog

from protocol.errors import ExitCode
from protocol.printable import printable
from relay.config import Config
from relay.process.shown_amounts import shown_bytes
from relay.status.asked_replicas import ReplicaQuestions
from relay.status.relay_status import relay_status
from relay.status.running_relay import RelayAnswers

_CLEAR: Final = "\x1b[H\x1b[2J"
_MOST_REPLICAS: Final = 20
_LONGEST_TEXT: Final = 1000


def status(config: Config, *, watch_s: float | None, as_json: bool) -> int:
    """Return the exit code of the last look. watch_s: again after so long, until Ctrl-C; None: once."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    code: int | None = None
    try:
        for found_code in _looks(config, watch_s, as_json=as_json):
            code = found_code
            if watch_s is None:
                break
            time.sleep(watch_s)
    except KeyboardInterrupt:
        if code is None:
            raise
    return ExitCode.FINE if code is None else code


def _looks(config: Config, watch_s: float | None, *, as_json: bool) -> Iterator[int]:
    """Yield the exit code of each look, for ever."""
    known: RelayAnswers | None = None
    questions = ReplicaQuestions()
    while True:
        found = asyncio.run(relay_status(config, known, questions))
        if as_json:
            sys.stdout.write(json.dumps(found) + "\n")
        else:
            clear = _CLEAR if watch_s is not None and sys.stdout.isatty() else ""
            sys.stdout.write(clear + "".join(f"{line}\n" for line in status_text(found)))
        if found["relay"]["running"] and found["relay"]["asked_as"] is None:
            # Not repeatedly: after some failed logins the relay would lock this address out.
            known = RelayAnswers(why=found["relay"]["not_asked"])
        sys.stdout.flush()
        yield ExitCode.FINDINGS if found["problems"] else ExitCode.FINE


def status_text(found: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of one look. Names that others supply are shown without escapes."""
    relay, source, archive = found["relay"], found["source"], found["archive"]
    running = f"runs (process {relay['pid'] or 'not known'})" if relay["running"] else "does not run"
    yield f"relay     {running}, listens at {printable(relay['listen'])}"
    if relay["not_asked"] and relay["running"]:
        yield f"          could not be asked: {printable(relay['not_asked'])}"
    if relay.get("not_asked_by_http") and relay["running"]:
        yield f"          {printable(relay['not_asked_by_http'])}"
    yield from _source_text(source)
    yield (
        f"archive   {printable(archive['directory'])}: {archive['files']} files, {shown_bytes(archive['bytes'])}"
        + (f", {shown_bytes(archive['free_bytes'])} free" if "free_bytes" in archive else "")
    )
    if archive.get("newest"):
        last = f", last event {archive['last_time']}" if archive["last_time"] else ""
        yield f"          {printable(archive['oldest'])} to {printable(archive['newest'])}:{archive['end']}{last}"
    for view in found["views"]:
        if "trouble" in view:
            continue
        state = "stopped" if view["stopped"] else f"{shown_bytes(view['behind_bytes'])} behind"
        yield f"view      {view['name']} for {view['for']}: {view['files']} files, {shown_bytes(view['bytes'])}, {state}"
    yield from _replicas_text(found)
    if (memory := found.get("memory")) is not None:
        yield f"memory    {shown_bytes(memory['used_bytes'])} held for clients, of {shown_bytes(memory['limit_bytes'])} (memory.budget)"
    rows = found["ledger"]["newest"]
    yield f"ledger    {found['ledger']['rows']} rows" + (", the newest:" if rows else "")
    for row in rows:
        yield f"          {row['time']} {row['kind']} {printable(row['file'])} {printable(row['text'])}"
    for problem in found["problems"]:
        yield f"PROBLEM   {printable(problem)}"
    if not found["problems"]:
        yield "          no problems"


def _source_text(source: dict[str, Any]) -> Iterator[str]:
    where = printable(str(source["address"]))
    if source["attached"] is None:
        yield f"source    {where}"
        return
    state = printable(source["state"] or "not followed")
    behind = source["seconds_behind"]
    place = f", at {printable(source['file'])}:{source['position']}" if source["file"] else ""
    yield f"source    {where}: {state}{place}, {'lag not known' if behind is None else f'{behind} s behind'}"


def _replicas_text(found: dict[str, Any]) -> Iterator[str]:
    replicas = found["replicas"]
    if found["relay"]["asked_as"] is None and not replicas:
        if found["applied_elsewhere"]:
            yield f"replicas  {len(found['applied_elsewhere'])} are in relay.toml"
        yield from _elsewhere_text(found)
        return
    yield f"replicas  {len(replicas)} are being sent binlogs"
    for one in replicas[:_MOST_REPLICAS]:
        behind = "" if one["behind_bytes"] is None else f", {shown_bytes(one['behind_bytes'])} behind"
        behind += "" if one["behind_s"] is None else f" ({one['behind_s']:.0f} s)"
        yield f"          {printable(one['user'])}@{printable(one['address'])} at {printable(one['place'] or '-')}{behind}"
        yield f"            applied: {printable(one['applied_text'], _LONGEST_TEXT)}"
    if len(replicas) > _MOST_REPLICAS:
        yield f"          and {len(replicas) - _MOST_REPLICAS} more (--json has all)"
    yield from _elsewhere_text(found)


def _elsewhere_text(found: dict[str, Any]) -> Iterator[str]:
    """Yield the replicas of relay.toml that are none of the connected ones, or of which that is not known."""
    for one in found["applied_elsewhere"][:_MOST_REPLICAS]:
        number = f" (server_id {one['server_id']})" if one["server_id"] else ""
        yield f"          {printable(one['replica'])}{number}, not known to be one of these"
        yield f"            applied: {printable(one['text'], _LONGEST_TEXT)}"
