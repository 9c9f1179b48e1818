"""Why an archive is not made from a bucket."""

from relay.object_store.object_errors import MirrorRefused


class RestoreRefused(MirrorRefused):
    """No archive can be made from what is in the bucket, or not here."""
