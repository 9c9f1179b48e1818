"""The facts that `init` gets from the source: by the relay's account, by another one, or from its greeting alone."""

import asyncio
from pathlib import Path
from typing import Final

from protocol.handshake import plain_version
from protocol.printable import printable
from relay.config import ServerSource
from relay.doctor.server_answers import ServerAnswers, ask
from relay.setup.setup_answers import SetupAnswers, SourceSurvey
from relay.upstream.source.open_source import open_source
from relay.upstream.source.source_errors import UpstreamError

_LIMIT_S: Final = 20.0
_GREETING_S: Final = 10.0
_LONGEST_GREETING: Final = 4096
_PROTOCOL: Final = 10
_TLS_TOO_OLD: Final = ("tls_too_old", "tls_failed")


async def survey(answers: SetupAnswers) -> SourceSurvey:
    """Ask it, in bounded time; this changes nothing there."""
    tried: list[str] = []
    people: list[tuple[str, Path]] = []
    if answers.ask_user is not None and answers.ask_password_file is not None:
        people.append((answers.ask_user, answers.ask_password_file))
    if answers.source_password_file.exists():
        people.append((answers.source_user, answers.source_password_file))
    for user, password_file in people:
        found = await _asked(answers, user, password_file)
        if isinstance(found, SourceSurvey):
            return found
        tried.append(found)
    try:
        async with asyncio.timeout(_GREETING_S):
            flavour, version = await _greeting(answers.source_host, answers.source_port)
    except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError) as error:
        text = f"{answers.source_host}:{answers.source_port} cannot be reached: {str(error) or 'no answer in time'}"
        return SourceSurvey(None, None, None, frozenset(), None, None, printable("; ".join([*tried, text])))
    why = "; ".join(tried) or "there is no account to ask it by yet"
    return SourceSurvey(flavour, version, None, frozenset(), None, None, printable(why))


async def _asked(answers: SetupAnswers, user: str, password_file: Path) -> SourceSurvey | str:
    """Return its answers to this account, or the reason why there are none."""
    error: UpstreamError | None = None
    # The TLS of MySQL 5.6 is not accepted: then in clear, unless a mode was given.
    security = answers.security
    for mode in (security["ssl_mode"],) if "ssl_mode" in security else ("preferred", "disabled"):
        settings = ServerSource.model_validate(
            {
                "host": answers.source_host,
                "port": answers.source_port,
                "user": user,
                "password_file": password_file,
                "server_id": 1,
                **security,
                "ssl_mode": mode,
            }
        )
        try:
            async with asyncio.timeout(_LIMIT_S):
                connection = await open_source(settings)
                try:
                    told = await ask(connection)
                finally:
                    connection.close()
        except TimeoutError:
            return f"no answer to {user!r} within {_LIMIT_S:g} s"
        except UpstreamError as failed:
            error = failed
            if failed.name in _TLS_TOO_OLD:
                continue
            return f"{failed.what}. {failed.advice}" if failed.name == "password_withheld" else failed.what
        if isinstance(told, UpstreamError):
            return told.what
        return _surveyed(told)
    return error.what if error is not None else "no answer"


def _surveyed(told: ServerAnswers) -> SourceSurvey:
    taken = {told.server_id} | {one.server_id for one in told.replicas or ()}
    whys = [f"{name}: {text}" for name, text in told.refusals.items() if name in ("SHOW BINARY LOGS", "SHOW REPLICAS")]
    held = told.binlogs
    if told.replicas is not None:  # if the newer words are refused, the older ones may have been answered
        whys = [why for why in whys if not why.startswith("SHOW REPLICAS")]
    if held is not None:
        whys = [why for why in whys if not why.startswith("SHOW BINARY LOGS")]
    return SourceSurvey(
        told.flavour,
        told.version,
        told.variable("gtid_mode"),
        frozenset(taken),
        held[0][0] if held else None,
        len(held) if held is not None else None,
        printable("; ".join(whys)),
        told.variable("binlog_format"),
    )


async def _greeting(host: str, port: int) -> tuple[str, str]:
    """Return flavour and version from the greeting. Raises: OSError, ValueError, asyncio.IncompleteReadError."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        length = int.from_bytes((await reader.readexactly(4))[:3], "little")
        if not 0 < length <= _LONGEST_GREETING:
            raise ValueError("it does not greet as a MySQL server does")
        greeting = await reader.readexactly(length)
    finally:
        writer.close()
    if greeting[0] != _PROTOCOL:
        raise ValueError("it refuses the connection, or is no MySQL server")
    version = printable(greeting[1:].split(b"\0", 1)[0].decode("utf-8", "replace"))
    plain = plain_version(version)
    return ("mariadb" if "mariadb" in plain.lower() else "mysql"), plain
