"""Options that several commands have, and the configuration that one of them names."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from relay.config import Config

ConfigOption = Annotated[Path, typer.Option("--config", "-c", help="The configuration file, TOML.")]
ViewArgument = Annotated[str, typer.Argument(metavar="NAME", help="Of the [[view]].", show_default=False)]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object a line, for machines.")]


def loaded_config(path: Path, *, writes: bool = False, stays: bool = False) -> "Config":
    """Return the configuration. From here on no link in the archive is followed.

    writes: the command changes the archive; one of root's does so as the archive's owner from here on. stays: it runs
    for as long as the machine does, and keeps none of root's rights.
    Raises: ConfigError, with every mistake in the file; NotTheOwner if root must not do it.
    """
    from relay.config import load_config
    from relay.disk.file_calls import keep_within
    from relay.disk.file_owner import become_owner

    config = load_config(path)
    keep_within(config.archive.dir)
    if writes:
        become_owner(config.archive_directory, config.archive.dir, reads_all=not stays)
    return config
