"""The settings that `init` did not get by options: asked at a terminal, or refused by name if there is none."""

import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeVar, get_args

import typer

from relay.commands.outcome import CommandFailed
from relay.config import SslMode
from relay.setup.setup_answers import SetupAnswers
from relay.view.rules.settings import TARGETS

_REPLICAS: Final = (*TARGETS, "mariadb-10.11", "mariadb-11.8")
_Answer = TypeVar("_Answer", str, int)


def answered(config: Path, given: Mapping[str, str | int | Path | None]) -> SetupAnswers:
    """Return the options, and the answers at the terminal. given: by the names of SetupAnswers. Raises: CommandFailed."""
    _check_word("--ssl-mode", given["ssl_mode"], get_args(SslMode))
    _check_word("--view", given["view"], TARGETS)
    _check_word("--replica-version", given["replica_version"], _REPLICAS)
    if (given["ask_user"] is None) != (given["ask_password_file"] is None):
        raise CommandFailed("--ask-user and --ask-password-file belong together.")
    config = config.absolute()
    beside = config.parent
    values: dict[str, object] = dict(given)
    values["source_host"] = _text(given["source_host"], "--source-host", "Host of the source", None)
    values["source_port"] = _text(given["source_port"], "--source-port", "Port of the source", 3306)
    values["source_user"] = _text(given["source_user"], "--source-user", "The relay's account there", "repl")
    if given["ssl_ca"] is None and given["public_key"] is None and given["ssl_mode"] is None:
        asked = _text(None, "--ssl-ca", "A copy of its ca.pem, for MySQL 8.0 and later (empty: none)", "")
        values["ssl_ca"] = asked or None
    for name in ("ssl_ca", "public_key"):
        if values[name] is not None:
            values[name] = Path(str(values[name])).absolute()
    values["archive"] = Path(
        _text(_shown(given["archive"]), "--archive", "Directory of the archive", "/var/lib/binlog-relay")
    ).absolute()
    values["listen_port"] = _text(given["listen_port"], "--listen-port", "Port for replicas", 3307)
    values["replica_user"] = _text(given["replica_user"], "--replica-user", "Account of the replicas here", "replica")
    values["listen_host"] = given["listen_host"] or "0.0.0.0"
    values["relay_host"] = given["relay_host"] or socket.gethostname()
    values["source_password_file"] = Path(
        _shown(given["source_password_file"]) or beside / "source.password"
    ).absolute()
    values["replica_password_file"] = Path(
        _shown(given["replica_password_file"]) or beside / "replica.password"
    ).absolute()
    values["admin_password_file"] = beside / "dba.password"
    if given["ask_password_file"] is not None:
        values["ask_password_file"] = Path(str(given["ask_password_file"])).absolute()
    return SetupAnswers(config=config, **values)  # type: ignore[arg-type]


def _shown(value: object) -> str | None:
    return None if value is None else str(value)


def _text(value: object, option: str, question: str, default: _Answer | None) -> _Answer:
    """Return value, if it was given; else the answer at the terminal; else the default."""
    if value is not None and value != "":
        return value  # type: ignore[return-value]
    if sys.stdin is not None and sys.stdin.isatty():
        return typer.prompt(question, default=default)  # type: ignore[no-any-return]
    if default is None:
        raise CommandFailed(f"{option} is missing, and there is no terminal to ask at.")
    return default


def _check_word(option: str, value: object, words: tuple[str, ...]) -> None:
    if value is not None and value not in words:
        raise CommandFailed(f"{option} {value}: write one of {', '.join(words)}.")
