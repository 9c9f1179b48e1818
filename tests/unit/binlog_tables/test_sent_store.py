"""What executors are sent to open files with."""

import pickle
from functools import partial

import pytest

pytest.importorskip("obstore", reason="obstore is not installed: pip install '.[bucket]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[audit]'")

from relay.binlog_tables.plan.packed_store import BucketStore, store_of


def test_a_bucket_is_sent_as_its_url(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"ACCESS_KEY_ID": "any", "SECRET_ACCESS_KEY": "hidden-word", "REGION": "us-east-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    packed = pickle.dumps(partial(store_of("s3://binlogs/archive").open, "s3://binlogs/archive/bin.000001"))
    assert b"hidden-word" not in packed
    assert isinstance(pickle.loads(packed).func.__self__, BucketStore)
