"""The settings of a view, from its section in relay.toml and the source that it is built from."""

from dataclasses import replace
from pathlib import Path
from uuid import UUID

from protocol.position import Position
from relay.archive.storage.archived_file import SourceIdentity
from relay.config.sections import ViewSection, ViewStartPlace
from relay.config.text.problems import Wrong
from relay.view.rules.kept_settings import kept_uuid, view_directory
from relay.view.rules.settings import FIRST_FOR_MARIADB, MARIADB, TARGETS, ViewSettings, ViewStart, derived_uuid


def view_settings(section: ViewSection, source: SourceIdentity) -> ViewSettings:
    """Return the settings of the view. source: whose binlogs the archive began with.

    Raises: Wrong for a uuid that is the source's own.
    """
    if section.uuid is not None and section.uuid == (source.server_uuid or "").lower():
        raise Wrong(
            f"uuid {section.uuid} is the server_uuid of the source: what is assigned would be taken for its own",
            "Write another one, or leave it out",
        )
    derived = derived_uuid(source.flavour, source.server_id, source.server_uuid)
    settings = replace(settings_as_written(section, derived), flavour=source.flavour)
    if source.flavour == MARIADB:
        _check_mariadb(settings)
    return settings


def _check_mariadb(settings: ViewSettings) -> None:
    """Check the settings for a MariaDB source. Raises: Wrong for what none of its views can be."""
    if settings.target_version < FIRST_FOR_MARIADB:
        raise Wrong(
            f'the source is a MariaDB server, and for = "{settings.target}" reads nothing of what it writes',
            f'Views of MariaDB are for "mysql-8.0", "mysql-8.4" and "{TARGETS[-1]}"',
        )
    if settings.gtids != "assign":
        raise Wrong(
            f'the source is a MariaDB server, whose GTIDs MySQL does not know, and gtids = "{settings.gtids}" gives no others',
            'Write gtids = "assign": its replicas then follow by auto-position',
        )
    if settings.dependencies != "serial":
        raise Wrong(
            f'the source is a MariaDB server, and dependencies = "{settings.dependencies}" reads rows of MySQL alone',
            'Leave it out, or write "serial": what the source committed together may then run together',
        )
    if settings.engines != "keep":
        raise Wrong(
            f'the source is a MariaDB server, and engines = "{settings.engines}" is for views of MySQL',
            "Leave it out: Aria becomes InnoDB in any case",
        )


def settings_as_written(section: ViewSection, derived: UUID) -> ViewSettings:
    """Return what the section says by itself. derived: the uuid of the assigned GTIDs if it does not name one."""
    start = section.start
    return ViewSettings(
        name=section.name,
        gtids=section.gtids,
        uuid=UUID(section.uuid) if section.uuid is not None else derived,
        target=section.target,
        engines=section.engines,
        account_statements=section.account_statements,
        explicit_timestamps=section.explicit_defaults_for_timestamp,
        collations=section.collation_numbers,
        known_engines=section.known_engines,
        foreign_keys=section.foreign_keys,
        plain_tables=tuple(section.plain_tables),
        accept=tuple(section.accept),
        start=ViewStart(Position(start.file, start.position), start.next)
        if isinstance(start, ViewStartPlace)
        else None,
        dependencies=section.dependencies,
        json_columns=section.json_columns,
        known_kinds=section.known_kinds,
    )


def settings_of_view(section: ViewSection, source: SourceIdentity, archive: Path) -> ViewSettings:
    """Do as `view_settings`; if no uuid is configured and the view exists, use the uuid that it has. Blocking.

    archive: the source's directory. Raises: Wrong.
    """
    settings = view_settings(section, source)
    kept = kept_uuid(view_directory(archive, section.name)) if section.uuid is None else None
    return settings if kept is None else replace(settings, uuid=kept)
