"""A bucket of a real S3 server, behind a proxy that makes what storages do on bad days."""

import dataclasses
import datetime
import pickle
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from relay.object_store.object_errors import ObjectDamaged, ObjectMissing, StoreRefused, StoreUnreachable
from relay.object_store.object_store import ObjectStore
from relay.object_store.store_options import StoreOptions
from relay.object_store.stored_object import StoredObject
from tests.support.s3_server import SECRET_KEY, S3Server, need_rclone
from tests.support.storage_faults import Fault


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    need_rclone()
    with S3Server(tmp_path_factory.mktemp("storage") / "s3") as server:
        yield server


@pytest.fixture
def s3(server: S3Server) -> Iterator[S3Server]:
    yield server
    server.faults.forgive()


@pytest.fixture
def store(s3: S3Server, request: pytest.FixtureRequest) -> ObjectStore:
    return ObjectStore(s3.options(f"archive/{request.node.name}", timeout_s=5.0))


def test_what_was_put_is_read_whole_and_in_parts(store: ObjectStore, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(range(256)) * 80_000)
    store.put_file("a/large", tmp_path / "large")
    store.put_bytes("a/small", b"hello")
    assert store.get("a/small") == b"hello"
    assert store.get("a/large") == (tmp_path / "large").read_bytes()
    assert store.get_range("a/large", 255, 258) == b"\xff\x00\x01"
    assert store.get_tail("a/large", 2) == (b"\xfe\xff", 20_480_000)
    assert store.get_tail("a/small", 100) == (b"hello", 5)
    assert store.head("a/small").size == 5
    assert [facts.key for facts in store.list("a")] == ["a/large", "a/small"]
    assert [facts.key for facts in store.list("a", after="a/large")] == ["a/small"]
    store.delete(["a/large", "a/never"])
    assert [facts.key for facts in store.list()] == ["a/small"]


def test_a_list_of_several_pages_is_whole(store: ObjectStore, s3: S3Server) -> None:
    for number in range(1100):
        store.put_bytes(f"many/{number:06}", b"")
    s3.faults.order(Fault.THROTTLED, method="GET", part="list-type")
    assert [facts.key for facts in store.list("many")] == [f"many/{number:06}" for number in range(1100)]


def test_an_object_is_a_source_of_bytes_that_asks_once_for_its_end(store: ObjectStore, s3: S3Server) -> None:
    store.put_bytes("x", bytes(range(200)))
    before = len(s3.faults.requests)
    source = StoredObject(store, "x", tail_bytes=50)
    assert source.size == 200
    assert source.read(160, 100) == bytes(range(160, 200))
    assert len(s3.faults.requests) == before + 1
    assert source.read(10, 5) == bytes(range(10, 15))
    assert source.read(200, 5) == b""


@pytest.mark.parametrize("fault", [Fault.THROTTLED, Fault.CUT, Fault.RESET], ids=lambda fault: fault.value)
def test_a_storage_that_stumbles_is_asked_again(store: ObjectStore, s3: S3Server, fault: Fault) -> None:
    data = bytes(range(256)) * 4000
    store.put_bytes("x", data)
    for read in (
        lambda: store.get("x"),
        lambda: store.get_range("x", 0, len(data)),
        lambda: store.get_tail("x", len(data))[0],
    ):
        s3.faults.order(fault, 2, method="GET")
        assert read() == data
    assert store.counts.retries == 6
    s3.faults.order(Fault.THROTTLED, 1, method="PUT")
    store.put_bytes("y", data)
    assert store.get("y") == data


@pytest.mark.parametrize("fault", [Fault.TIMED_OUT, Fault.ABORTED], ids=lambda fault: fault.value)
def test_what_passes_by_itself_is_asked_again_whatever_its_status(
    store: ObjectStore, s3: S3Server, fault: Fault
) -> None:
    s3.faults.order(fault, 1, method="PUT")
    store.put_bytes("x", b"abc")
    assert (store.get("x"), store.counts.retries) == (b"abc", 1)


def test_a_clock_that_is_wrong_is_named_as_such(store: ObjectStore, s3: S3Server) -> None:
    s3.faults.order(Fault.SKEWED, 1, method="GET")
    with pytest.raises(StoreRefused, match=r"RequestTimeTooSkewed.*Set the clock of this machine") as told:
        store.get("x")
    assert "keys" not in str(told.value)


def test_a_part_of_a_large_upload_that_fails_is_sent_again_and_not_the_whole(
    store: ObjectStore, s3: S3Server, tmp_path: Path
) -> None:
    (tmp_path / "large").write_bytes(bytes(range(256)) * 160_000)  # 7 parts
    before = len(s3.faults.requests)
    s3.faults.order(Fault.THROTTLED, 3, method="PUT", part="partNumber")
    s3.faults.order(Fault.RESET, 1, method="PUT", part="partNumber=5")
    store.put_file("large", tmp_path / "large")
    sent = [request for request in s3.faults.requests[before:] if "partNumber" in request.path]
    assert len(sent) == 7 + 4
    assert store.counts.retries == 0
    assert store.get_range("large", 40_000_000, 40_000_256) == bytes(range(256))


def test_who_is_told_to_stop_does_not_wait_for_a_part(s3: S3Server, store: ObjectStore, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(20 << 20))
    s3.faults.order(Fault.THROTTLED, 1000, method="PUT", part="partNumber")
    threading.Timer(0.3, store.stop).start()
    began = time.monotonic()
    with pytest.raises(StoreUnreachable):
        store.put_file("large", tmp_path / "large")
    assert time.monotonic() - began < 5


def test_a_storage_that_is_gone_is_given_up_in_time_and_named(store: ObjectStore, s3: S3Server) -> None:
    store = ObjectStore(dataclasses.replace(store.options, give_up_s=1.0))
    s3.faults.refuse()
    try:
        began = time.monotonic()
        with pytest.raises(StoreUnreachable, match=r"s3://binlogs/archive/.*/x: .*\(tried \d times in \d s\)"):
            store.get("x")
        assert time.monotonic() - began < 3
    finally:
        s3.faults.listen()


def test_a_silent_storage_is_a_fault_too(s3: S3Server, store: ObjectStore) -> None:
    impatient = ObjectStore(dataclasses.replace(store.options, timeout_s=0.5, tries=2))
    impatient.put_bytes("x", b"abc")
    s3.faults.order(Fault.SILENT, 1, method="GET")
    assert impatient.get("x") == b"abc"
    assert impatient.counts.retries == 1


def test_who_is_told_to_stop_does_not_wait_for_a_storage(s3: S3Server, store: ObjectStore) -> None:
    stop = threading.Event()
    stopped = ObjectStore(store.options, stop)
    s3.faults.order(Fault.THROTTLED, 100)
    threading.Timer(0.3, stop.set).start()
    began = time.monotonic()
    with pytest.raises(StoreUnreachable, match="503 SlowDown"):
        stopped.get("x")
    assert time.monotonic() - began < 2


def test_what_no_second_try_helps_is_told_at_once(store: ObjectStore, s3: S3Server, tmp_path: Path) -> None:
    with pytest.raises(ObjectMissing, match="there is no such object"):
        store.get_range("never", 0, 4)
    with pytest.raises(StoreRefused, match="there is no such bucket"):
        ObjectStore(dataclasses.replace(store.options, url="s3://elsewhere/x")).put_bytes("x", b"")
    (tmp_path / "wrong").write_text("another")
    with pytest.raises(StoreRefused, match="403 SignatureDoesNotMatch") as told:
        ObjectStore(dataclasses.replace(store.options, secret_key_file=str(tmp_path / "wrong"))).get("x")
    assert "another" not in str(told.value)
    with pytest.raises(StoreRefused, match="none: No such file"):
        ObjectStore(dataclasses.replace(store.options, secret_key_file=str(tmp_path / "none")))
    assert store.counts.retries == 0


def test_an_object_that_is_too_short_is_damaged_not_tried_for_ever(store: ObjectStore) -> None:
    store.put_bytes("x", b"12345")
    for start, stop in ((0, 40), (30, 40)):
        with pytest.raises(ObjectDamaged):
            store.get_range("x", start, stop)
    assert store.counts.retries == 0


def test_options_travel_and_show_no_secret(store: ObjectStore) -> None:
    assert pickle.loads(pickle.dumps(store.options)) == store.options
    assert SECRET_KEY not in repr(store) + repr(store.options)
    for url in ("s3://", "http://x/y", "s3://key:secret@bucket/", "bucket"):
        with pytest.raises(ValueError, match="a bucket is written s3://"):
            StoreOptions(url)


@pytest.mark.parametrize("behind", ["?sv=1&sig=SECRET", "#SECRET", "?"])
def test_a_url_that_may_have_a_secret_at_its_end_is_refused_without_saying_it(behind: str) -> None:
    with pytest.raises(ValueError, match=r"behind \? or #") as told:
        StoreOptions(f"az://container/prefix{behind}")
    assert "SECRET" not in str(told.value)


def test_a_directory_is_a_storage_too(tmp_path: Path) -> None:
    store = ObjectStore(StoreOptions(f"file://{tmp_path}/store"))
    store.put_bytes("a/x", b"abc")
    assert (store.get("a/x"), store.get_tail("a/x", 2), store.get_range("a/x", 1, 2)) == (b"abc", (b"bc", 3), b"b")
    assert [facts.key for facts in store.list()] == ["a/x"]
    store.delete(["a/x", "a/x"])
    assert list(store.list()) == []
    with pytest.raises(ObjectMissing):
        store.get("a/x")


def test_a_storage_that_begins_its_listing_anew_each_time_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    obstore = pytest.importorskip("obstore")
    monkeypatch.setattr(obstore, "list", lambda *_, **__: iter([[_listed("a"), _listed("b")]]))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    store = ObjectStore(StoreOptions("s3://bucket/x", region="us-east-1"))
    with pytest.raises(StoreRefused, match="lists the same names again"):
        list(store.list())


def _listed(path: str) -> dict[str, Any]:
    return {"path": path, "size": 1, "e_tag": None, "last_modified": datetime.datetime.now(datetime.UTC)}
