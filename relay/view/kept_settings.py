"""`view.json` in a view's directory: the settings that its files were made with. Other settings make other bytes."""

import json
from pathlib import Path
from typing import Final
from uuid import UUID

from relay.archive.storage.archive_errors import ArchiveConflict
from relay.archive.storage.files import VIEW_NAME, FileLayer, replace_file
from relay.view.rules.settings import ViewSettings

_LAYOUT: Final = 1
VIEWS_DIRECTORY: Final = "views"
"""In the archive's directory of a source: a directory for each view, of the view's name."""


def view_directory(archive: Path, name: str) -> Path:
    """Where a view of the archive in `archive` is."""
    return archive / VIEWS_DIRECTORY / name


def kept_record(settings: ViewSettings) -> dict[str, object]:
    """The settings as they are kept."""
    start = settings.start
    return {
        "layout": _LAYOUT,
        "gtids": settings.gtids,
        "uuid": str(settings.uuid),
        "for": settings.target,
        "engines": settings.engines,
        "account_statements": settings.account_statements,
        "explicit_defaults_for_timestamp": settings.explicit_timestamps,
        "collations": {str(number): other for number, other in sorted(settings.collations.items())},
        "known_engines": dict(sorted(settings.known_engines.items())),
        "start": None if start is None else [start.position.file, start.position.offset, start.next_gno],
    }


def kept_uuid(directory: Path) -> UUID | None:
    """Whose GTIDs the view in `directory` has, where there is one. Blocking. A source that is followed later changes them not."""
    try:
        return UUID(json.loads((directory / VIEW_NAME).read_bytes())["uuid"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def check_kept(directory: Path, settings: ViewSettings, layer: FileLayer) -> None:
    """Compares the settings with those that the view in `directory` was made with; keeps them where there is none yet. Blocking.

    Raises: ArchiveConflict where they differ, or what is kept cannot be read; OSError.
    """
    path = directory / VIEW_NAME
    wanted = kept_record(settings)
    try:
        kept = json.loads(path.read_bytes())
    except FileNotFoundError:
        layer.make_directory(directory)
        replace_file(layer, path, json.dumps(wanted).encode())
        return
    except ValueError as error:
        raise ArchiveConflict(f"{path}: {error}", file=None, offset=None, advice=_advice(settings.name)) from error
    if not isinstance(kept, dict) or kept != wanted:
        others = kept if isinstance(kept, dict) else {}
        changed = [
            f"{key} was {others.get(key)!r}, is {wanted[key]!r}" for key in wanted if others.get(key) != wanted[key]
        ]
        text = f"view {settings.name} was made with other settings: {'; '.join(changed) or 'some are not known here'}"
        raise ArchiveConflict(text, file=None, offset=None, advice=_advice(settings.name))


def _advice(name: str) -> str:
    return (
        f'Take the change back, or run "binlog-relay view rebuild {name}": the view is made anew, with other positions. '
        "A view of another name with the new settings leaves this one to its replicas."
    )
