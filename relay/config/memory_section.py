"""[memory]: how much clients may make the relay hold."""

from typing import Annotated, Final

from pydantic import AfterValidator

from relay.config.text.amounts import checked_size, size_bytes
from relay.config.text.problems import Wrong
from relay.config.toml_section import TomlSection

_LEAST_BYTES: Final = 128 << 20


def _checked_budget(text: str) -> str:
    if size_bytes(checked_size(text)) < _LEAST_BYTES:
        raise Wrong("this is too little", 'Write "128MiB" or more: one request of a replica may have 64 MiB')
    return text


class MemorySection(TomlSection):
    """The memory that clients may make the relay hold."""

    budget: Annotated[str, AfterValidator(_checked_budget)] = "512MiB"
    """Memory for what all replicas and clients together make the relay hold: requests that have not come whole, answers that they
    have not read, sets of GTIDs, prepared statements, variables. When it is used up, the largest connection ends: that of the address
    that has most, of the account that has most (`memory_budget_exceeded` in the log); a client that holds little is not affected.
    `check-config` says how much memory the process needs in all ([RUNNING.md](RUNNING.md#memory)). `MiB`, `GiB` or `TiB`, at least
    `"128MiB"`. Example: `"1GiB"`"""

    @property
    def budget_bytes(self) -> int:
        """`budget` as a number."""
        return size_bytes(self.budget)
