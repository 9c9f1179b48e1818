"""Why a bucket is not used as the copy of an archive, or an archive not made from it."""


class MirrorRefused(Exception):
    """`str()` is whole sentences: what is there, and what to do."""


class PrefixTaken(MirrorRefused):
    """Another relay writes to this place of the bucket, or another archive is there."""


class RestoreRefused(MirrorRefused):
    """No archive can be made from what is in the bucket, or not here."""
