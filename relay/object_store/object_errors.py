"""The errors of a bucket: what, which object, the next step. No text has a secret."""

from typing import ClassVar, Final

from protocol.errors import ExitCode, RelayError

LATER: Final = "It is tried again; look at the network and at the storage's own status."
RIGHTS: Final = "Look at the keys of [archive.bucket] in relay.toml, and at what they may do in this bucket."


class ObjectStoreError(RelayError):
    """Base of the errors of buckets. `url`: of the object or of the place."""

    exit_code = ExitCode.WRONG_USE
    full_stop = "."
    shown = ("url", "what", "advice")
    advice_of_kind: ClassVar[str] = ""

    def __init__(self, what: str, *, url: str, advice: str | None = None) -> None:
        super().__init__(what, self.advice_of_kind if advice is None else advice)
        self.url = url
        self.text = f"{url}: {what}"


class StoreUnreachable(ObjectStoreError):
    """There was no answer, or one that says "later", after all tries."""

    exit_code = ExitCode.SOURCE_UNREACHABLE
    advice_of_kind = LATER


class BucketAway(StoreUnreachable):
    """The bucket answers no request: that was reported once, and it is looked for. Mostly nothing was sent."""


class StoreRefused(ObjectStoreError):
    """An answer that no second try improves: wrong credentials, no such bucket, not allowed."""

    advice_of_kind = RIGHTS


class PlaceRefused(StoreRefused):
    """The bucket answers, and its place is not this archive's, or not this process's now. `what` is whole sentences."""

    def __init__(self, what: str, *, url: str, advice: str | None = None) -> None:
        super().__init__(what.rstrip("."), url=url, advice="" if advice is None else advice)
        self.text = self.what


class ObjectMissing(ObjectStoreError):
    """The object does not exist."""


class ObjectDamaged(ObjectStoreError):
    """The object is not what it should be."""


class MirrorRefused(RelayError):
    """A bucket is not used for an archive. `str()` is whole sentences: what is there, and what to do."""

    exit_code = ExitCode.WRONG_USE


class PrefixBusy(MirrorRefused):
    """Another process of this archive wrote there moments ago: it may be dead, and then the place is free soon."""
