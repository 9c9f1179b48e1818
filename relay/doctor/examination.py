"""The doctor's checks, all of them in parallel, in bounded time."""

import asyncio
import datetime
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from protocol.binlog.layout import HEADER_SIZE
from protocol.errors import Malformed
from protocol.printable import printable
from relay.archive.catalog.catalog import CatalogUnreadable
from relay.archive.catalog.generation_directories import begun_generations
from relay.archive.storage.archived_file import ArchivedFile
from relay.archive.storage.files import CATALOG_NAME, UUID_NAME
from relay.archive_inspection.listing import list_generations
from relay.config import Config, DirectorySource, ServerSource
from relay.disk.file_calls import read_file
from relay.doctor.certificate_checks import certificate_lines, shown_certificate_line
from relay.doctor.doctor_line import DoctorLine
from relay.doctor.machine_checks import archive_rate, machine_lines, relay_pid
from relay.doctor.process_sockets import process_sockets
from relay.doctor.replica_checks import replica_lines
from relay.doctor.server_answers import ServerAnswers, ask
from relay.doctor.source_checks import OwnPlace, source_lines
from relay.process.shown_amounts import shown_bytes
from relay.upstream.binlog_directory import binlog_names
from relay.upstream.source.connection import SourceConnection
from relay.upstream.source.identity import earlier_registration, own_registration
from relay.upstream.source.open_source import open_source
from relay.upstream.source.source_errors import FailureKind, UpstreamError

DEFAULT_LIMIT_S: Final = 30.0
_VERIFYING: Final = ("verify_ca", "verify_identity")
_SOURCE: Final = ("source", "the source")
_REPLICA: Final = ("--replica", "the replica")


@dataclass(frozen=True, slots=True)
class _Reached:
    """A server that was asked: its answers, or the reason why there are none."""

    settings: ServerSource
    answers: ServerAnswers | UpstreamError
    rate_bytes_s: float | None = None


async def examine(config: Config, replicas: Sequence[ServerSource], limit_s: float) -> list[DoctorLine]:
    """Return all lines. replicas: how to reach those whose settings are checked. limit_s: for each server's answers together."""
    files = await asyncio.to_thread(_archived, config.archive_directory)
    asked = await asyncio.gather(
        *(_reach(one, limit_s) for one in config.sources), *(_reach(one, limit_s, _REPLICA) for one in replicas)
    )
    sources, behind = asked[: len(config.sources)], asked[len(config.sources) :]
    own = await asyncio.to_thread(_own_place, config)
    now = datetime.datetime.now(datetime.UTC)
    lines = _configuration_lines(config)
    for one in sources:
        lines += _source_lines(config, one, own, now)
    if isinstance(config.source, DirectorySource):
        directory = config.source
        lines += await asyncio.to_thread(lambda: list(_directory_lines(directory)))
    first = next((one for one in sources if isinstance(one.answers, ServerAnswers)), None)
    facts = first.answers if first is not None and isinstance(first.answers, ServerAnswers) else None
    lines += await asyncio.to_thread(_machine_lines, config, files, first, facts)
    lines += await asyncio.to_thread(lambda: list(certificate_lines(config, now)))
    ids = [one.answers.server_id if isinstance(one.answers, ServerAnswers) else 0 for one in behind]
    for number, one in enumerate(behind):
        about = f"replica {one.settings.host}:{one.settings.port}"
        if isinstance(one.answers, UpstreamError):
            lines.append(_not_reached(about, one.answers))
        else:
            others = [found for place, found in enumerate(ids) if place != number and found]
            lines += replica_lines(about, config, one.answers, facts, others)
    return lines


def _configuration_lines(config: Config) -> list[DoctorLine]:
    found = [
        DoctorLine("relay.toml", warning.key, "warning", printable(warning.what), warning.instead + ".")
        for warning in config.warnings
        if warning.key != "http.host"  # reported by the port's line
    ]
    return found or [DoctorLine("relay.toml", "configuration", "ok", "no mistakes, no advice")]


async def _reach(settings: ServerSource, limit_s: float, names: tuple[str, str] = _SOURCE) -> _Reached:
    """Ask a server. names: section and whose server it is, as in `SourceTls`."""
    connection: SourceConnection | None = None
    try:
        async with asyncio.timeout(limit_s):
            connection = await open_source(settings, needs_binlog=False, section=names[0], who=names[1])
            answers = await ask(connection)
            rate = None
            if isinstance(answers, ServerAnswers) and answers.binlogs:
                rate = await _source_rate(settings, answers.binlogs)
            return _Reached(settings, answers, rate)
    except UpstreamError as error:
        return _Reached(settings, error)
    except TimeoutError:
        text = f"{settings.host}:{settings.port} did not answer everything within {limit_s:g} s"
        return _Reached(settings, UpstreamError(FailureKind.NETWORK, text, "It may be overloaded; or raise --timeout."))
    finally:
        if connection is not None:
            connection.close()


async def _source_rate(settings: ServerSource, binlogs: Sequence[tuple[str, int]]) -> float | None:
    """Return the bytes a second since the oldest binlog was begun. Its first event is read, as mysqlbinlog would; None: unavailable."""
    connection: SourceConnection | None = None
    try:
        connection = await open_source(settings)
        events = connection.events_up_to_end(binlogs[0][0], 4)
        try:
            async for event in events:
                begun = int.from_bytes(event[:4], "little")
                if begun and len(event) > HEADER_SIZE:
                    age_s = time.time() - begun
                    return sum(size for _name, size in binlogs) / age_s if age_s >= 60 else None
        finally:
            await events.aclose()
    except (UpstreamError, Malformed):
        return None
    finally:
        if connection is not None:
            connection.close()
    return None


def _not_reached(about: str, error: UpstreamError) -> DoctorLine:
    check = "login" if error.kind is FailureKind.AUTHENTICATION else "reachable"
    return DoctorLine(about, check, "problem", printable(error.what), printable(error.advice))


def _source_lines(config: Config, one: _Reached, own: OwnPlace, now: datetime.datetime) -> list[DoctorLine]:
    about = f"source {one.settings.host}:{one.settings.port}"
    if isinstance(one.answers, UpstreamError):
        return [_not_reached(about, one.answers)]
    lines = [DoctorLine(about, "login", "ok", f"as {one.settings.user!r}")]
    lines += source_lines(about, one.settings, config, one.answers, own)
    if one.answers.certificate is not None:
        checked = one.settings.ssl_mode in _VERIFYING
        lines.append(shown_certificate_line(about, one.answers.certificate, now, checked=checked))
    return lines


def _archived(directory: Path) -> list[ArchivedFile]:
    """Return the newest generation's files; none if there is no archive yet, or no readable one: 'archive verify' reports that."""
    if not (directory / CATALOG_NAME).exists():
        return []
    try:
        return list_generations(directory)[-1][1]
    except (CatalogUnreadable, OSError):
        return []


def _newest_archived(directory: Path) -> str | None:
    """Return the newest binlog by the names of the files: after a kill the catalog may not know it yet."""
    try:
        names = binlog_names(begun_generations(directory)[-1][1])
    except OSError:
        return None
    return names[-1] if names else None


def _own_place(config: Config) -> OwnPlace:
    directory = config.archive_directory
    server_id = config.sources[0].server_id if config.sources else 0
    try:
        uuid: str | None = read_file(directory / UUID_NAME).decode("ascii").strip()
    except (OSError, ValueError):
        uuid = None
    registration = own_registration(server_id, config.listen.port)
    pid = relay_pid(directory)
    sockets = process_sockets(pid) if pid is not None else None
    return OwnPlace(
        registration,
        earlier_registration(directory),
        uuid,
        _newest_archived(directory),
        runs=pid is not None,
        ports=sockets.connected if sockets is not None else frozenset(),
    )


def _machine_lines(
    config: Config, files: Sequence[ArchivedFile], first: _Reached | None, facts: ServerAnswers | None
) -> list[DoctorLine]:
    held = {file.name: (file.end, file.first_timestamp, file.last_timestamp) for file in files}
    rate = archive_rate(held, time.time())
    if rate is None and first is not None:
        rate = first.rate_bytes_s
    to_come = None
    if not files and facts is not None and facts.binlogs is not None and config.source.start == "earliest":
        to_come = sum(size for _name, size in facts.binlogs)
    return list(machine_lines(config, rate, to_come))


def _directory_lines(source: DirectorySource) -> Iterator[DoctorLine]:
    about = f"source {source.path}"
    try:
        names = binlog_names(source.path)
        sizes = [(source.path / name).stat().st_size for name in names]
        for name in names[:1] + names[-1:]:
            with open(source.path / name, "rb") as opened:
                opened.read(4)
    except OSError as error:
        text = f"cannot be read: {error.strerror} ({error.filename})"
        yield DoctorLine(
            about, "reachable", "problem", printable(text), "source.path must be readable for the relay's user."
        )
        return
    if not names:
        text = "there are no binlogs in it yet: no file with a name such as mysql-bin.000001"
        yield DoctorLine(about, "binlogs", "warning", text, "Copy them there in order, or correct source.path.")
        return
    text = f"{len(names)} binlogs, {shown_bytes(sum(sizes))}, {names[0]} to {names[-1]}"
    yield DoctorLine(about, "binlogs", "ok", printable(text))
