"""The source's settings that readers of its binlogs ask the relay for: queried at each attachment, and kept beside the archive."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

import pymysql.err
import structlog

from protocol.printable import printable
from protocol.statements.session.source_settings import SOURCE_SETTINGS
from relay.archive.storage.files import SOURCE_SETTINGS_NAME
from relay.archive.storage.small_file import write_small_file
from relay.disk.file_calls import read_file
from relay.disk.kept_json import kept_json

log = structlog.get_logger()

# None of them is longer in any server.
_MOST_CHARACTERS: Final = 256


class SettingsReader(Protocol):
    """A connection to the source."""

    async def variables(self, names: Sequence[str]) -> dict[str, str]:
        """Return the texts of those global variables that the source has, by name in lower case."""


async def read_source_settings(source: SettingsReader, known: Mapping[str, str]) -> dict[str, str]:
    """Return the source's values of SOURCE_SETTINGS, by name; `known` if it refuses, as it is followed all the same.

    Raises: UpstreamError for what a later try may cure.
    """
    try:
        found = await source.variables(SOURCE_SETTINGS)
    except pymysql.err.MySQLError as error:
        log.info("source_settings_not_seen", why=str(error), note="clients are shown what is usual for its version")
        return dict(known)
    return {name: text for name, text in found.items() if name in SOURCE_SETTINGS and len(text) <= _MOST_CHARACTERS}


def keep_source_settings(directory: Path, settings: Mapping[str, str]) -> None:
    """Save what readers are shown while the source cannot be reached. Blocking. Raises: OSError."""
    write_small_file(directory / SOURCE_SETTINGS_NAME, json.dumps(dict(settings), sort_keys=True) + "\n")


def kept_source_settings(directory: Path) -> dict[str, str]:
    """Return what the source last reported; empty for a new archive. Blocking."""
    path = directory / SOURCE_SETTINGS_NAME
    try:
        held = kept_json(read_file(path))
        return {name: printable(str(text), _MOST_CHARACTERS) for name, text in held.items() if name in SOURCE_SETTINGS}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError) as error:
        log.warning(
            "source_settings_unreadable", file=str(path), why=str(error), note="asked again at the next attachment"
        )
        return {}
