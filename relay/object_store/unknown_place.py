"""A place of a bucket that has binlogs, and no word of whose they are: nobody takes it without being told to."""

from itertools import islice
from typing import Final

from relay.object_store.object_errors import MirrorRefused
from relay.object_store.object_store import ObjectStore

_MOST_LOOKED_AT: Final = 1000
"""Of the first objects: what a relay has written stands among them, unless much else does, in a folder that should be its own."""
_OF_BINLOGS: Final = (".place", ".zst", ".zst.enc")
NOBODY: Final = "nobody"
"""Who owns such a place, as `archive claim --of` names it."""


def refuse_unknown(store: ObjectStore) -> None:
    """For one who found no binlog-relay.json there. Blocking. Raises: MirrorRefused; ObjectStoreError."""
    for facts in islice(store.list(), _MOST_LOOKED_AT):
        if facts.key.endswith(_OF_BINLOGS):
            raise MirrorRefused(
                f"{store.url()} has binlogs ({facts.key}), and no binlog-relay.json that says whose they are. Nothing is written or "
                "removed there. If they are this archive's: stop the relay, run `binlog-relay archive claim`, and start it. Else give "
                "each archive a prefix of its own in [archive.bucket] url."
            )
