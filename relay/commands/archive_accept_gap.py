"""`binlog-relay archive accept-gap`: while the relay is stopped, the operator decides that it continues after a gap at its source."""

import asyncio
import getpass
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from relay.archive.archive import Archive
from relay.archive.gaps.accepted_gap import AcceptedGap
from relay.archive.gaps.gap_decision import GapDecision
from relay.archive.storage.archive_errors import ArchiveLocked
from relay.commands.archive_command import archive_failures
from relay.commands.outcome import CommandFailed
from relay.config import Config, ServerSource
from relay.process.log_setup import setup_logging
from relay.upstream.attach.attachment import Attacher
from relay.upstream.attach.gap_plan import GapRequest, parse_place
from relay.upstream.chosen_source import first_source, kept_chosen
from relay.upstream.source.identity import own_registration, own_uuid
from relay.upstream.source.source_errors import UpstreamError
from relay.upstream.source.source_status import SourceLink

_STOP: Final = "a stopped relay whose source does not lead on"


def accept_gap(config: Config, config_path: Path, *, to: str | None, as_json: bool) -> None:
    """Look at the source, write the decision down, print what is missing. Raises: CommandFailed."""
    directory = config.archive_directory
    setup_logging("error")
    if not isinstance(config.source, ServerSource):
        text = f"This relay follows the directory {config.source.path}: put the missing files there."
        raise CommandFailed(text)
    with archive_failures(directory):
        try:
            gap = asyncio.run(_decide(config, directory, to))
        except ArchiveLocked:
            statement = (
                "CALL binlog_relay.accept_gap()" if to is None else f"CALL binlog_relay.accept_gap({_quoted(to)})"
            )
            text = (
                f"The relay is running. Issue this at it, with an account that has admin = true: {statement}; such as "
                f'mysql -h {_host(config.listen.host)} -P {config.listen.port} -u ADMIN -p -e "{statement}"'
            )
            raise CommandFailed(text) from None
        except UpstreamError as error:
            raise CommandFailed(f"The source cannot be looked at: {error}", error.exit_code) from error
    if as_json:
        sys.stdout.write(gap.to_json() + "\n")
        return
    sys.stdout.write(f"{gap.text}\n")
    sys.stdout.write(f"The next start carries it out: binlog-relay run --config {config_path}\n")


async def _decide(config: Config, directory: Path, to: str | None) -> AcceptedGap:
    place = parse_place(to) if to is not None else None
    # Its lock proves that no relay runs, and its recovery determines where the archive ends.
    archive = await Archive.open(directory)
    try:
        first = first_source(config.sources, kept_chosen(archive.current.directory), None)
        source = first.settings
        attacher = Attacher(
            archive,
            source,
            own_registration(source.server_id, config.listen.port),
            own_uuid(directory),
            SourceLink(),
        )
        plan = attacher.gap_plan(accept_another=first.named)
        gap = await plan.find(GapRequest(_by(), time.time(), _STOP, place))
        await GapDecision(directory).keep(gap)
        return gap
    finally:
        await archive.close()


def _by() -> str:
    user = "somebody"
    with suppress(KeyError, OSError):
        user = getpass.getuser()
    return f"{user}@{socket.gethostname()} by the command line"


def _quoted(place: str) -> str:
    file, _, offset = place.rpartition(":")
    return f"'{file}', {offset}"


def _host(listened: str) -> str:
    return "127.0.0.1" if listened in ("0.0.0.0", "::", "") else listened
