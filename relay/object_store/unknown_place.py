"""A place of a bucket that has binlogs and no owner: it is taken only on request."""

from itertools import islice
from typing import Final

from relay.object_store.object_errors import MirrorRefused
from relay.object_store.object_store import ObjectStore

_MOST_LOOKED_AT: Final = 1000
"""The number of first objects that are examined: what a relay has written is among them, unless much else is in a folder that should
be its own."""
_OF_BINLOGS: Final = (".place", ".zst", ".zst.enc")
NOBODY: Final = "nobody"
"""The owner of such a place, as `archive claim --of` names it."""


def refuse_unknown(store: ObjectStore) -> None:
    """Refuse a place without a binlog-relay.json that contains binlogs. Blocking. Raises: MirrorRefused; ObjectStoreError."""
    for facts in islice(store.list(), _MOST_LOOKED_AT):
        if facts.key.endswith(_OF_BINLOGS):
            raise MirrorRefused(
                f"{store.url()} has binlogs ({facts.key}), and no binlog-relay.json that says whose they are. Nothing is written or "
                "removed there. If they are this archive's: stop the relay, run `binlog-relay archive claim`, and start it. Else give "
                "each archive a prefix of its own in [archive.bucket] url."
            )
