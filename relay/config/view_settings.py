"""What a view is to be, from its section in relay.toml and the source that it is made of."""

from dataclasses import replace
from pathlib import Path
from uuid import UUID

from protocol.position import Position
from relay.archive.storage.archived_file import SourceIdentity
from relay.config.problems import Wrong
from relay.config.sections import ViewSection, ViewStartPlace
from relay.view.kept_settings import kept_uuid, view_directory
from relay.view.rules.settings import ViewSettings, ViewStart, derived_uuid


def view_settings(section: ViewSection, source: SourceIdentity) -> ViewSettings:
    """The settings of the view. source: whose binlogs the archive began with.

    Raises: Wrong for a uuid that is the source's own.
    """
    if section.uuid is not None and section.uuid == (source.server_uuid or "").lower():
        raise Wrong(
            f"uuid {section.uuid} is the server_uuid of the source: what is assigned would be taken for its own",
            "Write another one, or leave it out",
        )
    derived = derived_uuid(source.flavour, source.server_id, source.server_uuid)
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
        start=ViewStart(Position(start.file, start.position), start.next)
        if isinstance(start, ViewStartPlace)
        else None,
    )


def settings_of_view(section: ViewSection, source: SourceIdentity, archive: Path) -> ViewSettings:
    """As `view_settings`; where no uuid is configured and the view is there, with the uuid that it has. Blocking.

    archive: the source's directory. Raises: Wrong.
    """
    settings = view_settings(section, source)
    kept = kept_uuid(view_directory(archive, section.name)) if section.uuid is None else None
    return settings if kept is None else replace(settings, uuid=kept)
