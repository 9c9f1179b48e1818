"""`binlog-relay archive repair`: damaged or missing files of the archive are fetched again; the relay is stopped meanwhile."""

import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from relay.archive.catalog.generation_directories import FIRST, begun_generations
from relay.archive.storage.archive_errors import ArchiveLocked
from relay.commands.archive_command import archive_failures, shown_name
from relay.commands.outcome import CommandFailed
from relay.config import Config, DirectorySource, ServerSource
from relay.packed_reads.named_binlog import bucket_url
from relay.repair.file_origin import DirectoryOrigin, FileOrigin, ServerOrigin, origin_of
from relay.repair.repair import RepairOutcome, StoppedRepair
from relay.upstream.chosen_source import first_source, kept_chosen


def repair(
    config: Config,
    names: Sequence[str],
    origin: str | None,
    copies_of: Callable[[int], Sequence[FileOrigin]],
    *,
    generation: int | None,
    as_json: bool,
) -> int:
    """Print the result for each file; return how many could not be repaired. Raises: CommandFailed.

    names: those files; none: all that are known to be damaged. origin: a directory, HOST:PORT or the bucket's URL; None: the source,
    then the bucket of [archive.mirror], which copies_of returns for a generation. generation: the one of the files; None: the newest.
    """
    directory = config.archive_directory
    with archive_failures(directory):
        generations = begun_generations(directory)
        newest = generations[-1][0]
        number = newest if generation is None else generation
        path = dict(generations).get(number)
        if path is None:
            raise CommandFailed(f"{directory} has no generation {number}; the newest is {newest}.")
        one = StoppedRepair(path, *_origins(config, path, (number, newest), origin, copies_of))
        try:
            outcomes = asyncio.run(_outcomes(one, names, number, as_json=as_json))
        except ArchiveLocked as error:
            text = f"A relay runs on {directory}: CALL binlog_relay.repair() there repairs, or stop it first."
            raise CommandFailed(text) from error
    if not outcomes and not as_json:
        sys.stdout.write(
            "No file is known to be damaged. 'binlog-relay archive verify --deep' reads all; name a file to fetch it again.\n"
        )
    return sum(not outcome.is_repaired for outcome in outcomes)


async def _outcomes(one: StoppedRepair, names: Sequence[str], number: int, *, as_json: bool) -> list[RepairOutcome]:
    outcomes = []
    async for outcome in one.run(names):
        outcomes.append(outcome)
        if as_json:
            sys.stdout.write(json.dumps({**asdict(outcome), "generation": number}) + "\n")
        else:
            sys.stdout.write(f"{shown_name(number, outcome.file)}: {outcome.text}\n")
    return outcomes


def _origins(
    config: Config,
    path: Path,
    numbers: tuple[int, int],
    origin: str | None,
    copies_of: Callable[[int], Sequence[FileOrigin]],
) -> tuple[FileOrigin, Sequence[FileOrigin]]:
    """Return the origin of files, and the further ones for those that it does not supply. numbers: of their generation and of the
    newest one."""
    number, newest = numbers
    url = None if origin is None else bucket_url(origin)
    copies = copies_of(number)
    if url is not None:
        wanted = [one for one in copies if f"{one.where}/".startswith(f"{url.rstrip('/')}/")]
        if not wanted:
            text = f"--from {url}: relay.toml has no [archive.mirror] there. Its [archive.bucket] says how the bucket is reached."
            raise CommandFailed(text)
        return wanted[0], ()
    if origin is None and number != newest:
        if not copies:
            text = f"Generation {number} is of a former source: say with --from where its files can be had."
            raise CommandFailed(text)
        return copies[0], ()
    return _origin(config, path, number, origin), copies if origin is None else ()


def _origin(config: Config, path: Path, number: int, origin: str | None) -> FileOrigin:
    source = config.source
    if origin is None:
        if isinstance(source, DirectorySource):
            return origin_of(source)
        candidates = [one for one in config.sources if isinstance(one, ServerSource)] or [source]
        return origin_of(first_source(candidates, kept_chosen(path), None).settings)
    copies = Path(origin)
    if copies.is_dir():
        # Another archive keeps its later generations as this one does.
        inner = copies / path.name if number != FIRST else copies
        return DirectoryOrigin(inner if inner.is_dir() else copies)
    host, colon, port = origin.rpartition(":")
    if not colon or not port.isdigit() or not isinstance(source, ServerSource):
        raise CommandFailed(f"--from {origin}: this is no directory and no HOST:PORT of a server.")
    return ServerOrigin(source.model_copy(update={"host": host, "port": int(port)}))
