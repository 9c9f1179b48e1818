"""The keys of encrypted binlogs for commands and jobs: those of the environment, and the readable ones of the relay."""

import contextlib
import os
from collections.abc import Sequence
from typing import Final

from relay.packed.key_ring import KeyRing, KeySource
from relay.packed.packed_errors import KeyUnreadable

KEYS_VARIABLE: Final = "BINLOG_RELAY_KEYS"
"""`ID=FILE` or `ID=env:VARIABLE`, separated by commas."""


def tool_keys(noted: Sequence[KeySource] = ()) -> KeyRing | None:
    """Return the keys. noted: by the relay, perhaps on another machine or for another account: an error about a missing key names its
    id then.

    Raises: KeyUnreadable, for one that the environment names.
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
