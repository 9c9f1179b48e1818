"""The chosen source of a generation of the archive, kept beside its binlogs, so that a restart continues with it.

relay.toml names sources; a statement, the command line or a failover may choose another one. That choice holds until relay.toml names
others than it did when the choice was made. No password is kept.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import structlog
from pydantic import ValidationError

from relay.archive.storage.files import SOURCE_NAME
from relay.archive.storage.small_file import write_small_file
from relay.config import ServerSource
from relay.disk.file_calls import read_file
from relay.disk.kept_json import kept_json

log = structlog.get_logger()

_TLS_KEYS: Final = ("ssl_mode", "ssl_ca", "ssl_cert", "ssl_key", "public_key")


@dataclass(frozen=True, slots=True)
class ChosenSource:
    """The followed source. `configured` are the addresses in relay.toml, in their order, when it was attached to."""

    host: str
    port: int
    user: str
    ssl_mode: str
    ssl_ca: str | None
    ssl_cert: str | None
    ssl_key: str | None
    configured: tuple[str, ...]
    public_key: str | None = None


@dataclass(frozen=True, slots=True)
class FirstSource:
    """The source with which a start of the relay begins. `named` says that it was knowingly chosen for an archive of another source."""

    settings: ServerSource
    named: bool


def address(settings: ServerSource) -> str:
    """Return host:port."""
    return f"{settings.host}:{settings.port}"


def chosen(settings: ServerSource, candidates: Sequence[ServerSource]) -> ChosenSource:
    """Return what is kept of the source that is followed."""
    return ChosenSource(
        settings.host,
        settings.port,
        settings.user,
        settings.ssl_mode,
        _text(settings.ssl_ca),
        _text(settings.ssl_cert),
        _text(settings.ssl_key),
        tuple(map(address, candidates)),
        _text(settings.public_key),
    )


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def keep_chosen(directory: Path, choice: ChosenSource) -> None:
    """Save the choice in the generation's directory. Blocking; a few bytes. Raises: OSError."""
    write_small_file(directory / SOURCE_NAME, json.dumps(asdict(choice), sort_keys=True) + "\n")


def kept_chosen(directory: Path) -> ChosenSource | None:
    """Return the source that was followed last; None in a new archive. Blocking; a few bytes."""
    path = directory / SOURCE_NAME
    try:
        held = kept_json(read_file(path))
        return ChosenSource(**{**held, "port": int(held["port"]), "configured": tuple(held["configured"])})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.warning("chosen_source_unreadable", file=str(path), why=str(error), note="relay.toml decides")
        return None


def with_address(candidates: Sequence[ServerSource], host: str, port: int) -> ServerSource:
    """Return the candidate at this address; if there is none, the first one's account and TLS at this address."""
    for candidate in candidates:
        if (candidate.host.lower(), candidate.port) == (host.lower(), port):
            return candidate
    return candidates[0].model_copy(update={"host": host, "port": port})


def first_source(
    candidates: Sequence[ServerSource], kept: ChosenSource | None, wanted: tuple[str, int] | None
) -> FirstSource:
    """Return the source with which a start of the relay begins. `wanted` is host and port from the command line."""
    if wanted is not None:
        return FirstSource(with_address(candidates, *wanted), named=True)
    if kept is None:
        return FirstSource(candidates[0], named=False)
    settings = with_address(candidates, kept.host, kept.port)
    if settings in candidates:
        return FirstSource(settings, named=False)
    if kept.configured != tuple(map(address, candidates)):
        log.warning(
            "source_named_in_configuration",
            source=address(candidates[0]),
            before=f"{kept.host}:{kept.port}",
            note="relay.toml names other sources than before: its first one is taken, once it is known to have all of the archive",
        )
        return FirstSource(candidates[0], named=True)
    log.warning(
        "source_named_before",
        source=f"{kept.host}:{kept.port}",
        note="chosen by a statement or the command line, and not in relay.toml; add it there, a password that was given is not kept",
    )
    return FirstSource(_as_kept(settings, kept), named=False)


def _as_kept(settings: ServerSource, kept: ChosenSource) -> ServerSource:
    values = {key: getattr(kept, key) for key in ("user", *_TLS_KEYS)}
    try:
        return ServerSource.model_validate({**dict(settings), **values})
    except ValidationError:
        log.warning("chosen_source_unusable", note="its account and TLS are taken from relay.toml")
        return settings
