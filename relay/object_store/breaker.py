"""A bucket that is away is not contacted by every caller again and again: one call checks it now and then, all others fail at once.

    it answers  --N calls in a row were given up, and a look finds nothing-->  away  --a look is answered-->  it answers

A look requests one name of the bucket: an object that alone cannot be read does not make the bucket one that is away.
"""

import random
import threading
import time
from collections.abc import Callable
from typing import Final

import structlog

from relay.object_store.object_errors import BucketAway, ObjectStoreError, StoreUnreachable
from relay.process.growing_pause import growing_pause

log = structlog.get_logger(__name__)

_CALLS: Final = 3
_FIRST_PAUSE_S: Final = 2.0
_LONGEST_PAUSE_S: Final = 60.0
_ADVICE: Final = (
    "Replicas that need binlogs from there get 1105 and come again by themselves; all else goes on. Look at the network, at the "
    "storage's own status, and at [archive.bucket]."
)


class Breaker:
    """The breaker of one bucket. Any thread.

    look: requests something small from the bucket, once; raises StoreUnreachable if it does not answer. url: for messages. stop: ends
    the looks.
    """

    def __init__(
        self,
        look: Callable[[], object],
        url: str,
        stop: threading.Event,
        *,
        calls: int = _CALLS,
        first_pause_s: float = _FIRST_PAUSE_S,
        longest_pause_s: float = _LONGEST_PAUSE_S,
    ) -> None:
        self.away_since = 0.0
        """The Unix time since which it is away; 0: it answers, as far as it was contacted."""
        self.times_away = 0
        self.told_at_once = 0
        """The calls that were not made while it was away."""
        self._look = look
        self._url = url
        self._stop = stop
        self._calls = calls
        self._pauses_s = first_pause_s, longest_pause_s
        self._given_up = 0
        """The calls that were given up in a row."""
        self._looks = False
        self._lock = threading.Lock()

    def check(self, url: str) -> None:
        """Check the state before each try of a call. Raises: BucketAway."""
        since = self.away_since
        if not since:
            return
        with self._lock:
            self.told_at_once += 1
        away_s = time.time() - since
        what = f"the bucket has not answered for {max(0.0, away_s):.0f} s, and is asked again now and then"
        raise BucketAway(what, url=url)

    def answered(self) -> None:
        """Note that a call was answered, whatever the answer was."""
        if self._given_up:
            with self._lock:
                self._given_up = 0

    def given_up(self, error: ObjectStoreError) -> None:
        """Note that a call was not answered, after all its tries. It may look for the bucket."""
        with self._lock:
            self._given_up += 1
            if self._given_up < self._calls or self._looks or self._stop.is_set():
                return
            self._looks = True
        if self._is_there():
            with self._lock:
                self._given_up, self._looks = 0, False
            return
        with self._lock:
            self.away_since = time.time()
            self.times_away += 1
        log.error("bucket_away", what=error.text, advice=_ADVICE)
        threading.Thread(target=self._wait_for_it, name="bucket-look", daemon=True).start()

    def _is_there(self) -> bool:
        try:
            self._look()
        except StoreUnreachable:
            return False
        except Exception as error:
            # A refusal is an answer. Callers find out what else is wrong: none of them waits for ever.
            if not isinstance(error, ObjectStoreError):
                log.warning("bucket_look_failed", url=self._url, error=f"{type(error).__name__}: {error}")
        return True

    def _wait_for_it(self) -> None:
        """Look for the bucket, in a thread of its own, as long as it is away."""
        chance = random.Random()
        looks = 1
        while not self._stop.wait(growing_pause(looks, *self._pauses_s, chance)):
            if self._is_there():
                break
            looks += 1
        with self._lock:
            away_s = time.time() - self.away_since
            self.away_since, self._given_up, self._looks = 0.0, 0, False
        if not self._stop.is_set():
            log.info("bucket_answers", url=self._url, away_s=round(away_s), looks=looks)
