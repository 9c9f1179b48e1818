"""Prepared XA transactions that a view does not have, so that the statement that ends them later is left out as well."""

import json
from typing import Final

_MOST_LEFT_OUT: Final = 1_000
"""The most names at once; beyond it the oldest are forgotten, which the source mostly never ended."""
_STATE: Final = b'{"xa_left_out":'


class LeftOutXa:
    """Prepared XA transactions that were left out: the statement that ends one finds none on a replica (1397), and is left out too."""

    def __init__(self) -> None:
        self._names: dict[bytes, None] = {}

    def prepared(self, name: bytes, *, left_out: bool) -> None:
        """Note that an XA transaction was prepared; `name` is as in XA START."""
        self._names.pop(name, None)
        if left_out:
            self._names[name] = None
            if len(self._names) > _MOST_LEFT_OUT:
                del self._names[next(iter(self._names))]

    def ended(self, name: bytes) -> bool:
        """Note that it is over; return whether it was left out."""
        left_out = name in self._names
        self._names.pop(name, None)
        return left_out

    def in_front_of(self, state: bytes) -> bytes:
        """Return `state` after this object's own, if there is something."""
        if not self._names:
            return state
        return _STATE + json.dumps([name.hex() for name in self._names]).encode() + b"}\n" + state

    def taken_from(self, state: bytes) -> bytes:
        """Set the knowledge to the first part of a state and nothing else; return the rest."""
        self._names = {}
        if not state.startswith(_STATE):
            return state
        line, _, rest = state.partition(b"\n")
        self._names = {bytes.fromhex(name): None for name in json.loads(line)["xa_left_out"]}
        return rest
