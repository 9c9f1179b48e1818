"""The short version of `python -m tests.sql_verdicts check`: a part of the recorded statements, read by every reader."""

from typing import Final

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[feed]'")
pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[audit]'")

from tests.sql_verdicts.corpus import Said, kept_statements
from tests.sql_verdicts.readers import HISTORY, READERS, Reader
from tests.sql_verdicts.recording import RECORDED, changes, read_recording
from tests.sql_verdicts.setting import Setting

_EVERY: Final = 125
_HISTORIES: Final = 3


@pytest.fixture(scope="module")
def statements() -> list[Said]:
    return kept_statements()


def test_the_readers_say_what_was_recorded_of_a_part_of_the_statements(statements: list[Said]) -> None:
    plain = [said for said in statements if HISTORY not in said.statement]
    histories = [said for said in statements if HISTORY in said.statement]
    chosen = plain[::_EVERY] + histories[:_HISTORIES]
    found = [change.shown() for change in changes(read_recording(RECORDED), chosen, READERS.values())]
    assert not found, "python -m tests.sql_verdicts check\n" + "\n".join(found[:5])


def test_every_statement_and_every_reader_is_recorded(statements: list[Said]) -> None:
    recording = read_recording(RECORDED)
    assert list(recording.columns) == list(READERS)
    assert [said for said in statements if said not in recording] == []
    assert len(statements) > 20_000


def test_a_reader_that_says_something_else_of_one_statement_is_found(statements: list[Said]) -> None:
    reader = READERS["kind: accounts"]

    def otherwise(statement: bytes, setting: Setting) -> object:
        return "another" if statement == statements[5].statement else reader.read(statement, setting)

    other = Reader(reader.name, "", otherwise, reader.servers, reader.by_mode, reader.by_server)
    found = list(changes(read_recording(RECORDED), statements[:10], [other]))
    assert [(change.said, change.after[0][1]) for change in found] == [(statements[5], '"another"')]
