"""Log lines: their form and what must never be in them."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from relay.process.log_setup import MASK, mask_secrets, setup_logging


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def logged(as_json: bool | None = None, **values: object) -> str:
    stream = io.StringIO()
    setup_logging(stream=stream, as_json=as_json)
    structlog.get_logger().info("replica_attached", **values)
    return stream.getvalue()


def test_a_stream_that_is_no_terminal_gets_json() -> None:
    line = json.loads(logged(server_id=7))
    assert (line["event"], line["server_id"], line["level"]) == ("replica_attached", 7, "info")


def test_times_are_iso_and_utc() -> None:
    assert json.loads(logged())["timestamp"].endswith("Z")


def test_a_terminal_gets_key_and_value() -> None:
    assert "level=info event=replica_attached server_id=7" in logged(as_json=False, server_id=7)


@pytest.mark.parametrize("key", ["password", "source_password", "password_hash", "Secret", "auth_token"])
def test_secrets_are_masked(key: str) -> None:
    assert json.loads(logged(**{key: "hunter2"}))[key] == MASK


def test_secrets_are_masked_inside_mappings() -> None:
    assert "hunter2" not in logged(account={"user": "r", "password": "hunter2"})


def test_masking_leaves_the_callers_mapping_alone() -> None:
    account = {"password": "hunter2"}
    mask_secrets(None, "info", {"account": account})
    assert account == {"password": "hunter2"}


def test_lines_below_the_level_are_dropped() -> None:
    stream = io.StringIO()
    setup_logging("warning", stream=stream)
    structlog.get_logger().info("quiet")
    assert stream.getvalue() == ""


def test_standard_library_warnings_go_the_same_way() -> None:
    stream = io.StringIO()
    setup_logging(stream=stream)
    logging.getLogger("aiomysql").warning("odd %s", "thing")
    assert json.loads(stream.getvalue())["event"] == "odd thing"
