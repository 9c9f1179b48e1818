"""Log lines: their form and what must never be in them."""

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from relay.process.log_setup import MASK, mask_secrets, setup_logging
from tests.support.hostile_names import OBEYED, unfit


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


@pytest.mark.parametrize("as_json", [False, True])
def test_no_line_has_anything_that_a_terminal_obeys(as_json: bool) -> None:
    stream = io.StringIO()
    setup_logging(stream=stream, as_json=as_json)
    try:
        raise ValueError(OBEYED)
    except ValueError:
        structlog.get_logger().exception(
            "connection_ended", user=OBEYED, reasons=[OBEYED, {OBEYED: OBEYED}], where=Path(OBEYED), long="x" * 100_000
        )
    logging.getLogger("asyncio").warning("one\n%s", OBEYED)
    text = stream.getvalue()
    assert unfit(text, lines=True) == ""
    assert len(text) < 40_000
    lines = text.splitlines()
    assert len(lines) == 2 if as_json else not [line for line in lines if line.startswith("level=error fake")]


@pytest.mark.parametrize("key", ["password", "source_password", "password_hash", "Secret", "auth_token"])
def test_secrets_are_masked(key: str) -> None:
    assert json.loads(logged(**{key: "hunter2"}))[key] == MASK


def test_secrets_are_masked_inside_mappings() -> None:
    assert "hunter2" not in logged(account={"user": "r", "password": "hunter2"})


def test_masking_leaves_the_callers_mapping_alone() -> None:
    account = {"password": "hunter2"}
    mask_secrets(None, "info", {"account": account})
    assert account == {"password": "hunter2"}


def warned(event: str, **values: object) -> dict[str, object]:
    stream = io.StringIO()
    setup_logging(stream=stream)
    structlog.get_logger().warning(event, **values)
    line: dict[str, object] = json.loads(stream.getvalue())
    return line


def test_a_warning_says_where_it_is_explained() -> None:
    assert warned("few_descriptors")["see"] == "docs/ERRORS.md#log-few_descriptors"


@pytest.mark.parametrize("event", ["archive_ledger", "archive_recovery_finding"])
def test_a_line_about_a_ledger_row_points_to_its_kind(event: str) -> None:
    assert warned(event, kind="gap")["see"] == "docs/ERRORS.md#ledger-gap"


@pytest.mark.parametrize("event", ["source_lost", "source_given_up"])
def test_a_line_about_a_lost_source_points_to_the_trouble(event: str) -> None:
    assert warned(event, trouble="source_silent")["see"] == "docs/ERRORS.md#source-source_silent"


def test_what_is_no_warning_points_nowhere() -> None:
    assert "see" not in json.loads(logged())


def test_lines_below_the_level_are_dropped() -> None:
    stream = io.StringIO()
    setup_logging("warning", stream=stream)
    structlog.get_logger().info("quiet")
    assert stream.getvalue() == ""


def test_standard_library_warnings_go_the_same_way() -> None:
    stream = io.StringIO()
    setup_logging(stream=stream)
    logging.getLogger("aiomysql").warning("odd %s", "thing")
    line = json.loads(stream.getvalue())
    assert line["event"] == "odd thing" and "see" not in line
