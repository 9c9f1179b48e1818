"""Options that several commands have, and the configuration that one of them names."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from relay.commands.outcome import WRONG_USE, CommandFailed

if TYPE_CHECKING:
    from relay.config import Config

ConfigOption = Annotated[Path, typer.Option("--config", "-c", help="The configuration file, TOML.")]
ViewArgument = Annotated[str, typer.Argument(metavar="NAME", help="Of the [[view]].", show_default=False)]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object a line, for machines.")]


def loaded_config(path: Path) -> "Config":
    """Raises: CommandFailed, with every mistake in the file."""
    from relay.config import ConfigError, load_config

    try:
        return load_config(path)
    except ConfigError as error:
        raise CommandFailed(str(error), WRONG_USE) from None
