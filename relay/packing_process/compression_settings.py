"""The means of packing."""

from collections.abc import Callable
from dataclasses import dataclass, field

from relay.archive.storage.files import FileLayer
from relay.packed.key_ring import KeyRing
from relay.packed.packing import PackOptions
from relay.packing_process.packer import Packer, ThreadPacker


def _as_it_comes() -> None:
    """Do nothing: the packer starts what it needs with the first order."""


@dataclass(frozen=True, slots=True)
class CompressionSettings:
    """keys: the active one encrypts. begin: called before the packer is: for a thread of low priority, which must not start a process
    itself (`ProcessPacker.begin`). It may raise OSError."""

    packer: Packer = field(default_factory=lambda: ThreadPacker(FileLayer()))
    options: PackOptions = field(default_factory=PackOptions)
    keys: KeyRing | None = None
    begin: Callable[[], None] = _as_it_comes

    @property
    def encrypts(self) -> bool:
        """True if what is packed is encrypted."""
        return self.keys is not None and self.keys.active is not None
