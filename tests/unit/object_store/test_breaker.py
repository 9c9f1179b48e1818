"""A bucket that is away: one looks for it, all others are told at once, and none of that for an object that alone cannot be read."""

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from relay.object_store.breaker import Breaker
from relay.object_store.object_errors import BucketAway, ObjectMissing, StoreRefused, StoreUnreachable
from relay.object_store.object_store import ObjectStore
from tests.support.chain import wait_until
from tests.support.s3_server import S3Server, need_rclone
from tests.support.storage_faults import Fault


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    need_rclone()
    with S3Server(tmp_path_factory.mktemp("storage") / "s3") as server:
        ObjectStore(server.options("a")).put_bytes("x", bytes(range(256)))
        ObjectStore(server.options("a")).put_bytes("y", b"y")
        yield server


@pytest.fixture
def s3(server: S3Server) -> Iterator[S3Server]:
    yield server
    server.faults.forgive()


@pytest.fixture
def store(s3: S3Server) -> Iterator[ObjectStore]:
    opened = ObjectStore(s3.options("a", tries=2, timeout_s=2.0), many_ask=True)
    assert opened.breaker is not None
    opened.breaker._pauses_s = 0.2, 1.0
    yield opened
    opened.stop()


def fails(read: Callable[[], object], kind: type[Exception] = StoreUnreachable) -> float:
    """How long it took to fail."""
    began = time.monotonic()
    with pytest.raises(kind):
        read()
    return time.monotonic() - began


def away_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "bucket-look"]


@pytest.mark.parametrize("how", ["refused", "503"])
def test_a_bucket_that_is_away_is_asked_by_one_alone_until_it_is_back(
    store: ObjectStore, s3: S3Server, how: str
) -> None:
    assert store.breaker is not None
    with capture_logs() as told:
        if how == "refused":
            s3.faults.refuse()
        else:
            s3.faults.order(Fault.THROTTLED, 10_000)
        for _ in range(3):
            fails(lambda: store.get("x"))
        assert store.breaker.away_since > 0
        asked, requests = store.counts.requests, len(s3.faults.requests)
        with ThreadPoolExecutor(32) as replicas:
            took = list(replicas.map(lambda _number: fails(lambda: store.get("x"), BucketAway), range(400)))
        assert max(took) < 0.5 and store.counts.requests == asked
        assert len(s3.faults.requests) - requests <= 4, "looks, no reads"
        assert away_threads() == ["bucket-look"]
        assert store.breaker.told_at_once >= 400
        if how == "refused":
            s3.faults.listen()
        s3.faults.forgive()
        wait_until(lambda: store.breaker is not None and not store.breaker.away_since, "it is found again", 10)
        assert len(store.get("x")) == 256
        wait_until(lambda: not away_threads(), "nobody looks for it any more")
    assert [line["event"] for line in told] == ["bucket_away", "bucket_answers"]
    assert s3.secret_file.read_text() not in str(told)


def test_calls_that_wait_for_their_next_try_end_when_it_is_known_to_be_away(s3: S3Server) -> None:
    patient = ObjectStore(s3.options("a", tries=8, give_up_s=60.0), many_ask=True)
    hasty = ObjectStore(s3.options("a", tries=1), many_ask=True)
    assert patient.breaker is not None
    # As one store with calls that began at other times.
    hasty._trying._breaker = patient.breaker
    s3.faults.refuse()
    try:
        waiting: list[float] = []
        caller = threading.Thread(target=lambda: waiting.append(fails(lambda: patient.get("x"), BucketAway)))
        caller.start()
        for _ in range(3):
            fails(lambda: hasty.get("x"))
        caller.join(10)
        assert waiting and waiting[0] < 8
    finally:
        s3.faults.listen()
        patient.stop()


def test_an_object_that_alone_cannot_be_read_makes_no_bucket_one_that_is_away(store: ObjectStore, s3: S3Server) -> None:
    assert store.breaker is not None
    s3.faults.order(Fault.THROTTLED, 10_000, method="GET", part="/a/x")
    with capture_logs() as told:
        for _ in range(7):
            fails(lambda: store.get("x"))
    assert store.breaker.away_since == 0.0 and told == []
    assert store.get("y") == b"y"


def test_answers_of_every_kind_are_none_that_a_bucket_is_away_for(store: ObjectStore, s3: S3Server) -> None:
    assert store.breaker is not None
    for _ in range(5):
        fails(lambda: store.get("never"), ObjectMissing)
    s3.faults.order(Fault.THROTTLED, 4)
    for _ in range(2):
        fails(lambda: store.get("x"))
    store.get("x")
    s3.faults.order(Fault.THROTTLED, 4)
    for _ in range(2):
        fails(lambda: store.get("x"))
    assert store.breaker.away_since == 0.0, "not in a row"


def test_a_bucket_that_refuses_has_answered(s3: S3Server, tmp_path: Path) -> None:
    (tmp_path / "wrong").write_text("another secret")
    refused = ObjectStore(s3.options("a", secret_key_file=str(tmp_path / "wrong")), many_ask=True)
    assert refused.breaker is not None
    for _ in range(5):
        fails(lambda: refused.get("x"), StoreRefused)
    assert refused.breaker.away_since == 0.0


def test_pauses_between_looks_grow_to_a_bound_and_differ() -> None:
    looks: list[float] = []
    stop = threading.Event()

    def look() -> None:
        looks.append(time.monotonic())
        raise StoreUnreachable("nobody is there", url="s3://b")

    breaker = Breaker(look, "s3://b", stop, calls=1, first_pause_s=0.04, longest_pause_s=0.16)
    with capture_logs():
        breaker.given_up(StoreUnreachable("nobody is there", url="s3://b/k"))
        wait_until(lambda: len(looks) >= 9, "it is looked for")
        stop.set()
    pauses = [later - earlier for earlier, later in itertools.pairwise(looks)]
    assert pauses[0] >= 0.02 and max(pauses[:8]) < 1.0 and len({round(pause, 4) for pause in pauses}) > 4
    assert min(pauses[4:8]) >= 0.08
    wait_until(lambda: not away_threads(), "the one who looks has ended")
