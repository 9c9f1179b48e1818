"""The errors of a bucket: what, which object, the next step. No text has a secret."""

from typing import Final

LATER: Final = "It is tried again; look at the network and at the storage's own status."
RIGHTS: Final = "Look at the keys of [archive.bucket] in relay.toml, and at what they may do in this bucket."


class ObjectStoreError(Exception):
    """`str()` is one sentence for an operator, and the advice. Fields: `what`, `url`, `text`, `advice`."""

    advice_of_kind = ""

    def __init__(self, what: str, *, url: str, advice: str | None = None) -> None:
        self.what = what
        self.url = url
        self.advice = self.advice_of_kind if advice is None else advice
        self.text = f"{url}: {what}"
        super().__init__(f"{self.text}." + (f" {self.advice}" if self.advice else ""))

    def __reduce__(self) -> tuple[object, ...]:
        # Spark's executors send their errors to the driver.
        return _again, (type(self), self.what, self.url, self.advice)


class StoreUnreachable(ObjectStoreError):
    """There was no answer, or one that says "later", after all tries."""

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


class MirrorRefused(Exception):
    """A bucket is not used for an archive. `str()` is whole sentences: what is there, and what to do."""


class PrefixTaken(MirrorRefused):
    """Another archive is in this place of the bucket."""


class PrefixBusy(MirrorRefused):
    """Another process of this archive wrote there moments ago: it may be dead, and then the place is free soon."""


def _again(kind: type[ObjectStoreError], what: str, url: str, advice: str) -> ObjectStoreError:
    return kind(what, url=url, advice=advice)
