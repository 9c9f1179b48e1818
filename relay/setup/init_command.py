"""`binlog-relay init`: writes relay.toml, passwords and statements; overwrites nothing."""

import asyncio
import contextlib
import logging
import secrets
import sys
from pathlib import Path
from typing import Final

import structlog

from relay.commands.outcome import CommandFailed
from relay.config import ConfigError, load_config
from relay.config.sections import SERVER_ID_MAX
from relay.disk.file_calls import SECRET_MODE, make_directory, make_new_file, remove_file
from relay.setup.relay_toml import PROOF, needs_proof, relay_toml
from relay.setup.setup_answers import SetupAnswers, SourceSurvey
from relay.setup.setup_statements import (
    REPLICA_PASSWORD,
    SOURCE_PASSWORD,
    replica_statements,
    source_statements,
    sql_text,
)
from relay.setup.source_survey import survey

_FIRST_FREE_ID: Final = 1_000_000
_RANDOM_BYTES: Final = 18
_LONGEST_OF_A_REPLICA: Final = 32
"""The limit of CHANGE REPLICATION SOURCE TO; MySQL 9.7 refuses longer ones (3056)."""
_ALL_KINDS: Final = "-aA1"
"""Characters that make a server that checks passwords accept it."""


def init(answers: SetupAnswers) -> None:
    """Ask the source, write the files, print the statements. Raises: CommandFailed; OSError."""
    statements = answers.config.with_suffix(".sql")
    for path in (answers.config, statements):
        if path.exists():
            text = f"{path} is there already, and nothing is overwritten. Remove it, or name another --config."
            raise CommandFailed(text)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    found = asyncio.run(survey(answers))
    server_id = _server_id(answers, found)
    usual = "disabled" if found.flavour == "mysql" and found.number < (5, 7, 0) else "preferred"
    ssl_mode = str(answers.security.get("ssl_mode", usual))
    made: list[Path] = []
    try:
        make_directory(answers.config.parent)
        source_password = _password(answers.source_password_file, made)
        replica_password = _password(answers.replica_password_file, made)
        if len(replica_password) > _LONGEST_OF_A_REPLICA:
            text = f"The password in {answers.replica_password_file} has more than 32 characters, and replicas take no longer one."
            raise CommandFailed(text)
        _password(answers.admin_password_file, made)
        _write(answers.config, relay_toml(answers, found, server_id, ssl_mode), made)
        at_source, at_replica = source_statements(answers, found), replica_statements(answers, found)
        text = _as_text(at_source, at_replica)
        # Placeholders are replaced in one pass: a password may contain anything.
        whole = "".join(
            {SOURCE_PASSWORD: sql_text(source_password), REPLICA_PASSWORD: sql_text(replica_password)}.get(part, part)
            for part in _parts(text)
        )
        _write(statements, whole, made)
        try:
            load_config(answers.config)
        except ConfigError as error:
            raise CommandFailed(f"What was answered makes no configuration: {error}") from None
    except BaseException:
        for path in made:
            with contextlib.suppress(OSError):
                remove_file(path)
        raise
    shown = text.replace(SOURCE_PASSWORD, f"'<what {answers.source_password_file} holds>'")
    shown = shown.replace(REPLICA_PASSWORD, f"'<what {answers.replica_password_file} holds>'")
    sys.stdout.write(_told(answers, found, server_id, made) + shown)
    sys.stdout.write(f"\n# With the passwords: {statements} (remove it afterwards). Next:\n")
    sys.stdout.write(
        f"#   binlog-relay doctor --config {answers.config}\n#   binlog-relay run --config {answers.config}\n"
    )


def _server_id(answers: SetupAnswers, found: SourceSurvey) -> int:
    wanted = answers.server_id
    if wanted is not None:
        if wanted in found.server_ids:
            text = (
                f"--server-id {wanted}: the source or one of its replicas has it. Write another one, or leave it out."
            )
            raise CommandFailed(text)
        return wanted
    while True:
        chosen = _FIRST_FREE_ID + secrets.randbelow(SERVER_ID_MAX - _FIRST_FREE_ID)
        if chosen not in found.server_ids:
            return chosen


def _password(path: Path, made: list[Path]) -> str:
    """Return the contents of the file; a new one is created if it is missing."""
    if path.exists():
        return path.read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
    password = secrets.token_urlsafe(_RANDOM_BYTES) + _ALL_KINDS
    make_directory(path.parent)
    _write(path, password + "\n", made)
    return password


def _write(path: Path, text: str, made: list[Path]) -> None:
    with open(make_new_file(path, SECRET_MODE), "w", encoding="utf-8") as file:
        made.append(path)
        file.write(text)


def _as_text(at_source: list[str], at_replica: list[str]) -> str:
    return "\n".join(["-- At the source:", *at_source, "", "-- At the replica:", *at_replica]) + "\n"


def _parts(text: str) -> list[str]:
    """Return the text, cut around its placeholders."""
    parts: list[str] = []
    for number, piece in enumerate(text.split(SOURCE_PASSWORD)):
        if number:
            parts.append(SOURCE_PASSWORD)
        for count, rest in enumerate(piece.split(REPLICA_PASSWORD)):
            if count:
                parts.append(REPLICA_PASSWORD)
            parts.append(rest)
    return parts


def _told(answers: SetupAnswers, found: SourceSurvey, server_id: int, made: list[Path]) -> str:
    lines = [f"# The source {answers.source_host}:{answers.source_port}: {found.shown}"]
    if found.gtid_mode is not None:
        lines[0] += f", gtid_mode {found.gtid_mode}"
    if found.binlogs is not None:
        lines[0] += f", {found.binlogs} binlogs from {found.oldest} on"
    if found.why:
        lines.append(f"# Not everything could be asked: {found.why}")
    known = (
        f", not among the {len(found.server_ids)} known ones" if found.server_ids else "; which are taken is not known"
    )
    lines.append(f"# The relay's server_id is {server_id}{known}.")
    lines += [f"# Written: {path}" for path in made]
    logged = found.logged
    if logged is not None:
        lines.append(f"# {logged.warning()}.")
        lines.append(f"# The first answer: {logged.answer()} There:")
        lines += [f"#   {one};" for one in logged.statements(answers.source_host, answers.source_port)]
    if needs_proof(answers, found):
        lines += [f"# {line}" for line in PROOF]
    return "\n".join(lines) + "\n\n"
