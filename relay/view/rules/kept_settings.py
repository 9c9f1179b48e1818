"""`view.json` in a view's directory: the settings that its files were built with. Other settings give other bytes."""

import json
from pathlib import Path
from typing import Final
from uuid import UUID

from protocol.position import is_binlog_name
from relay.archive.storage.archive_errors import ArchiveConflict
from relay.archive.storage.files import VIEW_NAME, FileLayer, replace_file
from relay.disk.file_calls import read_file
from relay.disk.kept_json import kept_json
from relay.view.rules.settings import ViewSettings

_LAYOUT: Final = 2
"""The layout of this record and of `NAME.rules` beside each binlog of the view (`SourceTables.state`). A view of another layout is
refused, and `view rebuild` rebuilds it."""
_DEPENDENCIES: Final = "serial"
_FLAVOUR: Final = "mysql"
_ANSWERS: Final = ("foreign_keys", "plain_tables", "accept")
"""The settings without which a view stops; they change no byte."""
VIEWS_DIRECTORY: Final = "views"
"""The subdirectory of a source's archive directory that contains a directory for each view, of the view's name."""


def view_directory(archive: Path, name: str) -> Path:
    """Return the directory of a view of the archive in `archive`."""
    return archive / VIEWS_DIRECTORY / name


def kept_record(settings: ViewSettings) -> dict[str, object]:
    """Return the settings as they are stored."""
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
        "foreign_keys": settings.foreign_keys,
        "plain_tables": sorted(settings.plain_tables),
        **({"accept": sorted(settings.accept)} if settings.accept else {}),
        "start": None if start is None else [start.position.file, start.position.offset, start.next_gno],
        # Left out where it is the default of older versions.
        **({} if settings.dependencies == _DEPENDENCIES else {"dependencies": settings.dependencies}),
        **({} if settings.flavour == _FLAVOUR else _of_mariadb(settings)),
    }


def _of_mariadb(settings: ViewSettings) -> dict[str, object]:
    kinds = dict(sorted(settings.known_kinds.items()))
    return {"flavour": settings.flavour, "json_columns": settings.json_columns, "known_kinds": kinds}


def kept_uuid(directory: Path) -> UUID | None:
    """Return the uuid of the GTIDs of an existing view in `directory`. Blocking. A source that is followed later does not change it."""
    try:
        return UUID(kept_json(read_file(directory / VIEW_NAME))["uuid"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def check_kept(directory: Path, settings: ViewSettings, layer: FileLayer) -> bool:
    """Compare the settings with those that the view in `directory` was built with; store them where there are none yet, and another
    `start` where nothing is built: the one before may have been refused. Return True if they were stored. Blocking.

    Raises: ArchiveConflict where they differ, or the stored ones cannot be read; OSError.
    """
    if check_unchanged(directory, settings):
        return False
    layer.make_directory(directory)
    replace_file(layer, directory / VIEW_NAME, json.dumps(kept_record(settings)).encode())
    return True


def check_unchanged(directory: Path, settings: ViewSettings) -> bool:
    """Compare only. Return False if they must be stored: they only remove stops, or none were stored before. Blocking.

    Raises: ArchiveConflict; OSError.
    """
    path = directory / VIEW_NAME
    wanted = kept_record(settings)
    try:
        kept = kept_json(read_file(path))
    except FileNotFoundError:
        return False
    except ValueError as error:
        raise ArchiveConflict(f"{path}: {error}", file=None, offset=None, advice=_advice(settings.name)) from error
    if isinstance(kept, dict) and _only_stops_less(kept, wanted):
        return False
    if not isinstance(kept, dict) or kept != wanted:
        if _is_other_start(kept, wanted) and not any(is_binlog_name(path.name) for path in directory.iterdir()):
            return False
        others = kept if isinstance(kept, dict) else {}
        defaults = {"dependencies": _DEPENDENCIES, "flavour": _FLAVOUR}
        before, now = defaults | others, defaults | wanted
        changed = [f"{key} was {before.get(key)!r}, is {now[key]!r}" for key in now if before.get(key) != now[key]]
        text = f"view {settings.name} was made with other settings: {'; '.join(changed) or 'some are not known here'}"
        raise ArchiveConflict(text, file=None, offset=None, advice=_advice(settings.name))
    return True


def damage_advice(name: str) -> str:
    """Return the advice for damaged files of the view itself: only the relay has them, and it rebuilds them."""
    return (
        f'Stop the relay, run "binlog-relay view rebuild {name}" and start it: the view is made again from the archive.'
    )


def _only_stops_less(kept: dict[str, object], wanted: dict[str, object]) -> bool:
    """Return whether the settings only add answers: the view stops at less, and what was built stays right."""
    before = {"foreign_keys": "server", "plain_tables": [], "accept": [], **kept}
    wanted = {"accept": [], **wanted}
    kinds = before.get("known_kinds")
    if isinstance(kinds, dict) and isinstance(wanted.get("known_kinds"), dict):
        # This adds answers to stops; earlier answers stay.
        before["known_kinds"] = {**wanted["known_kinds"], **kinds}  # type: ignore[dict-item]
    tables = before["plain_tables"]
    accepted = before["accept"]
    if kept == wanted or before | {key: wanted[key] for key in _ANSWERS} != wanted or not isinstance(tables, list):
        return False
    if not isinstance(accepted, list):
        return False
    plain_tables, accepts = wanted["plain_tables"], wanted["accept"]
    return (
        before["foreign_keys"] in ("server", wanted["foreign_keys"])
        and isinstance(plain_tables, list)
        and set(tables) <= set(plain_tables)
        and isinstance(accepts, list)
        and set(accepted) <= set(accepts)
    )


def _is_other_start(kept: object, wanted: dict[str, object]) -> bool:
    """Return whether nothing else is different."""
    return isinstance(kept, dict) and {**kept, "start": wanted["start"]} == wanted


def _advice(name: str) -> str:
    return (
        f'Take the change back, or stop the relay and run "binlog-relay view rebuild {name}": the view is rebuilt, with other '
        "positions, and its replicas have to be seeded again. A view of another name with the new settings leaves this one to its "
        "replicas."
    )
