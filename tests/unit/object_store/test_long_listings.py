"""A listing holds so many names and no more, whoever writes into the bucket."""

from pathlib import Path

import pytest

from relay.object_store import object_store
from relay.object_store.object_errors import StoreRefused
from relay.object_store.object_store import ObjectStore
from relay.object_store.store_options import StoreOptions


def test_a_bucket_with_more_objects_than_an_archive_has_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_store, "MOST_LISTED", 3)
    for number in range(3):
        (tmp_path / f"object-{number}").write_bytes(b"x")
    store = ObjectStore(StoreOptions(tmp_path.as_uri()))
    assert len(list(store.list())) == 3
    (tmp_path / "one-more").write_bytes(b"x")
    with pytest.raises(StoreRefused, match="more than 3 objects"):
        list(store.list())
