"""The check whether the room that `[retention]` requires can ever exist."""

import os

from relay.commands.outcome import CommandFailed
from relay.config import Config
from relay.config.text.amounts import size_bytes
from relay.retention.retention_texts import size_text


def check_room(config: Config) -> None:
    """Check the room. Blocking. Raises: CommandFailed if `min_free` is more than the whole file system of the archive."""
    wanted = config.retention.min_free
    if wanted is None:
        return
    directory = config.archive_directory
    place = next(one for one in (directory, *directory.parents) if one.exists())
    found = os.statvfs(place)
    whole = found.f_blocks * found.f_frsize
    if size_bytes(wanted) >= whole:
        raise CommandFailed(
            f'retention.min_free = "{wanted}": the whole file system of {place} has {size_text(whole)}, so all that may go would '
            "always go. Write a smaller size."
        )
