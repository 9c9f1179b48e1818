"""The keys of encrypted binlogs that commands and jobs have: those of the environment, and those of the relay that can be read."""

import contextlib
import os
from collections.abc import Sequence
from typing import Final

from relay.packed.key_ring import KeyRing, KeySource
from relay.packed.packed_errors import KeyUnreadable

KEYS_VARIABLE: Final = "BINLOG_RELAY_KEYS"
"""`ID=FILE` or `ID=env:VARIABLE`, separated by commas."""


def tool_keys(noted: Sequence[KeySource] = ()) -> KeyRing | None:
    """noted: by the relay, maybe on another machine or for another account: who needs one that lacks is told its id then.

    Raises: KeyUnreadable, of one that the environment names.
    """
    given = [_source(one) for one in os.environ.get(KEYS_VARIABLE, "").split(",") if one.strip()]
    keys = {source.id: source.read() for source in given}
    for source in noted:
        if source.id not in keys:
            with contextlib.suppress(KeyUnreadable):
                keys[source.id] = source.read()
    return KeyRing(keys, None) if keys else None


def _source(text: str) -> KeySource:
    key_id, _, where = text.strip().partition("=")
    if not where:
        raise KeyUnreadable(f"{KEYS_VARIABLE} has {text.strip()!r}, ID=FILE or ID=env:VARIABLE is wanted")
    name = where.removeprefix("env:")
    return KeySource(key_id, env=name) if where != name else KeySource(key_id, file=where)
