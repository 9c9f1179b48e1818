"""The common base of all sections of relay.toml."""

from pydantic import BaseModel, ConfigDict


class TomlSection(BaseModel):
    """A table of relay.toml: unknown keys and values of another type are refused, and no message shows what was written."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, hide_input_in_errors=True, populate_by_name=True
    )
