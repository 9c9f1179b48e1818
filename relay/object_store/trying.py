"""A call to a storage, retried as long as that can help, with the reason of its end."""

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from random import uniform
from typing import TYPE_CHECKING, Final, TypeVar

from relay.object_store.object_errors import (
    BucketAway,
    ObjectDamaged,
    ObjectMissing,
    ObjectStoreError,
    StoreRefused,
    StoreUnreachable,
)

if TYPE_CHECKING:
    from relay.object_store.breaker import Breaker

_FIRST_PAUSE_S: Final = 0.2
_LONGEST_PAUSE_S: Final = 10.0
_SHOWN_CHARACTERS: Final = 300
_CODE: Final = re.compile(r"<Code>([^<]{1,80})</Code>")
_MESSAGE: Final = re.compile(r"<Message>([^<]{1,200})</Message>")
_STATUS: Final = re.compile(r"status code: (\d{3})|status: (\d{3})|HTTP (\d{3})|HTTP status \w+ error \((\d{3})")
_PASSES: Final = ("RequestTimeout", "OperationAborted", "ConditionalRequestConflict")
"""Codes of S3 that come with 400 or 409 and are temporary."""
_ADVICE: Final = {
    "RequestTimeTooSkewed": "Set the clock of this machine (timedatectl, chronyc tracking): it differs from the storage's by too much.",
    "ExpiredToken": "The session's token has expired: give this process a new one, or keys that do not expire.",
}
"""The advice for codes whose cause is not the keys and their rights."""
_T = TypeVar("_T")


@dataclass(slots=True)
class StoreCounts:
    """The counts of operations on a storage since it was opened. `failures`: calls that were given up."""

    requests: int = 0
    retries: int = 0
    failures: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, **amounts: int) -> None:
        """Add to the fields of these names. Any thread."""
        with self.lock:
            for name, amount in amounts.items():
                setattr(self, name, getattr(self, name) + amount)


class Trying:
    """Tries calls. `stop`: set, no call waits for another try. `breaker`: decides when no call is made. Any thread."""

    def __init__(
        self,
        tries: int,
        give_up_s: float,
        counts: StoreCounts,
        stop: threading.Event,
        breaker: "Breaker | None" = None,
    ) -> None:
        self._tries = tries
        self._give_up_s = give_up_s
        self._counts = counts
        self._stop = stop
        self._breaker = breaker

    def run(self, url: str, call: Callable[[], _T]) -> _T:
        """Return what `call` returns. Blocking. Raises: StoreUnreachable (BucketAway), StoreRefused, ObjectMissing, ObjectDamaged
        (shorter than a range).

        A pause is random up to a bound that doubles: many that failed together do not come back together.
        """
        if self._breaker is None:
            return self._run(url, call)
        try:
            found = self._run(url, call)
        except BucketAway:
            raise
        except StoreUnreachable as error:
            self._breaker.given_up(error)
            if self._breaker.away_since:
                raise BucketAway(error.what, url=url) from None
            raise
        except ObjectStoreError:
            self._breaker.answered()
            raise
        self._breaker.answered()
        return found

    def _run(self, url: str, call: Callable[[], _T]) -> _T:
        from obstore.exceptions import BaseError

        began = time.monotonic()
        bound = _FIRST_PAUSE_S
        tried = 0
        while True:
            if self._breaker is not None:
                self._breaker.check(url)
            tried += 1
            self._counts.add(requests=1)
            try:
                return call()
            except (BaseError, OSError) as error:
                named = _named(error, url)
                if not isinstance(named, StoreUnreachable):
                    self._counts.add(failures=int(not isinstance(named, ObjectMissing)))
                    raise named from None
            pause = uniform(bound / 2, bound)
            left = began + self._give_up_s - time.monotonic() - pause
            if tried >= self._tries or left <= 0 or self._stop.wait(pause):
                self._counts.add(failures=1)
                spent = time.monotonic() - began
                raise StoreUnreachable(f"{named.what} (tried {tried} times in {spent:.0f} s)", url=url)
            self._counts.add(retries=1)
            bound = min(bound * 2, _LONGEST_PAUSE_S)


def _named(error: Exception, url: str) -> ObjectStoreError:
    from obstore import exceptions

    text = str(error).partition("\n\nDebug source")[0]
    code = _CODE.search(text)
    what = _shown(text, code)
    if code is not None and code[1] == "NoSuchBucket":
        return StoreRefused("there is no such bucket", url=url)
    if isinstance(error, exceptions.NotFoundError | FileNotFoundError):
        return ObjectMissing("there is no such object", url=url)
    if code is not None and code[1] == "InvalidRange":
        return ObjectDamaged("it is shorter than what was asked for", url=url)
    refused = (
        exceptions.PermissionDeniedError,
        exceptions.UnauthenticatedError,
        exceptions.InvalidPathError,
        exceptions.NotSupportedError,
        exceptions.UnknownConfigurationKeyError,
        exceptions.PreconditionError,
        exceptions.AlreadyExistsError,
        PermissionError,
    )
    if code is not None and code[1] in _PASSES:
        return StoreUnreachable(what, url=url)
    if isinstance(error, refused) or _status(text) in (400, 401, 403, 405, 409, 411, 501):
        return StoreRefused(what, url=url, advice=None if code is None else _ADVICE.get(code[1]))
    return StoreUnreachable(what, url=url)


def _status(text: str) -> int:
    match = _STATUS.search(text)
    return int(next(filter(None, match.groups()))) if match is not None else 0


def _shown(text: str, code: re.Match[str] | None) -> str:
    """Return the text for an error: the answer's own code and message if there is one, and nothing else of its body."""
    status = _status(text)
    message = _MESSAGE.search(text)
    if code is not None:
        said = f"{code[1]}: {message[1]}" if message is not None else code[1]
        return (f"HTTP {status} {said}" if status else said).rstrip(".")
    first = " ".join(text.partition("<")[0].split()).rstrip(".: ")
    return first[:_SHOWN_CHARACTERS] or type(text).__name__
