"""The errors for an archive that is not restored from a bucket."""

from relay.object_store.object_errors import MirrorRefused


class RestoreRefused(MirrorRefused):
    """No archive can be restored from the contents of the bucket, or not here."""
