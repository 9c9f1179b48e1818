"""Prepared XA transactions that a view does not have, so that what ends them later is left out as well."""

import json
from typing import Final

_MOST_LEFT_OUT: Final = 1_000
"""So many at once; of more the oldest are forgotten, which the source never ended, mostly."""
_STATE: Final = b'{"xa_left_out":'


class LeftOutXa:
    """The prepared XA transactions that were left out: what ends them finds none on a replica (1397), so it is left out too."""

    def __init__(self) -> None:
        self._names: dict[bytes, None] = {}

    def prepared(self, name: bytes, *, left_out: bool) -> None:
        """An XA transaction was prepared; `name`: as XA START has it."""
        self._names.pop(name, None)
        if left_out:
            self._names[name] = None
            if len(self._names) > _MOST_LEFT_OUT:
                del self._names[next(iter(self._names))]

    def ended(self, name: bytes) -> bool:
        """It is over now; whether it was left out."""
        left_out = name in self._names
        self._names.pop(name, None)
        return left_out

    def in_front_of(self, state: bytes) -> bytes:
        """`state` with what is known here in front of it, if there is something."""
        if not self._names:
            return state
        return _STATE + json.dumps([name.hex() for name in self._names]).encode() + b"}\n" + state

    def taken_from(self, state: bytes) -> bytes:
        """Knows what stands in front of a state and nothing else; the rest of it."""
        self._names = {}
        if not state.startswith(_STATE):
            return state
        line, _, rest = state.partition(b"\n")
        self._names = {bytes.fromhex(name): None for name in json.loads(line)["xa_left_out"]}
        return rest
