"""Why a bucket is not used as the copy of an archive, or an archive not made from it."""


class MirrorRefused(Exception):
    """`str()` is whole sentences: what is there, and what to do."""


class PrefixTaken(MirrorRefused):
    """Another archive is in this place of the bucket."""


class PrefixBusy(MirrorRefused):
    """Another process of this archive wrote there moments ago: it may be dead, and then the place is free soon."""


class RestoreRefused(MirrorRefused):
    """No archive can be made from what is in the bucket, or not here."""
