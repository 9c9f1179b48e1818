"""What the source says of its settings is taken as far as it was asked, kept, and there again after a restart."""

from collections.abc import Sequence
from pathlib import Path

import pymysql.err
import pytest
import structlog.testing

from protocol.statements.session.source_settings import SOURCE_SETTINGS
from relay.upstream.source.source_settings import keep_source_settings, kept_source_settings, read_source_settings


class Source:
    def __init__(self, answer: dict[str, str] | Exception) -> None:
        self.answer = answer
        self.asked: Sequence[str] = ()

    async def variables(self, names: Sequence[str]) -> dict[str, str]:
        self.asked = names
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def test_one_question_is_for_all_of_them() -> None:
    source = Source({"binlog_format": "ROW", "lower_case_table_names": "1"})
    assert await read_source_settings(source, {"max_binlog_size": "4096"}) == source.answer
    assert source.asked == SOURCE_SETTINGS


async def test_what_was_not_asked_for_or_is_too_long_for_a_setting_is_left_out() -> None:
    source = Source({"binlog_format": "x" * 257, "binlog_row_image": "x" * 256, "init_connect": "SELECT 1"})
    assert await read_source_settings(source, {}) == {"binlog_row_image": "x" * 256}


async def test_a_source_that_refuses_to_tell_is_as_it_was_known() -> None:
    source = Source(pymysql.err.ProgrammingError(1146, "Table 'performance_schema.global_variables' doesn't exist"))
    with structlog.testing.capture_logs() as logs:
        assert await read_source_settings(source, {"binlog_format": "ROW"}) == {"binlog_format": "ROW"}
    assert [(line["event"], "1146" in line["why"]) for line in logs] == [("source_settings_not_seen", True)]


def test_what_it_said_is_there_again_after_a_restart(tmp_path: Path) -> None:
    assert kept_source_settings(tmp_path) == {}
    keep_source_settings(tmp_path, {"binlog_format": "ROW", "max_binlog_size": "4096"})
    assert kept_source_settings(tmp_path) == {"binlog_format": "ROW", "max_binlog_size": "4096"}


@pytest.mark.parametrize("text", ["", "[]", "5", "{"])
def test_a_kept_file_that_cannot_be_read_is_as_none_and_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "source-settings.json").write_text(text)
    with structlog.testing.capture_logs() as logs:
        assert kept_source_settings(tmp_path) == {}
    assert [line["event"] for line in logs] == ["source_settings_unreadable"]
