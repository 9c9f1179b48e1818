"""Answers compared with those that real servers gave: tests/corpus/answers, made by tests.corpus.record_answers."""

import json
from pathlib import Path
from typing import Any

import pytest

from protocol.errors import StatementRefused
from protocol.resultset import Rows, result_payloads
from protocol.statements import Request, SourceFacts, StatementSession, answer_statement
from protocol.wire import Cursor
from tests.support.statement_corpus import ERRORS, SAME, SAME_SHAPE

ANSWERS = Path(__file__).resolve().parents[2] / "corpus" / "answers"
SERVERS = sorted(path.stem for path in ANSWERS.glob("*.json"))
NOW = 1_700_000_000.0
UTF8, UTF8MB4 = 33, 45


def recording(name: str) -> tuple[SourceFacts, dict[str, dict[str, Any]]]:
    read = json.loads((ANSWERS / f"{name}.json").read_text(encoding="utf-8"))
    server = read["server"]
    facts = SourceFacts(server["flavour"], server["version"], 1, server["uuid"], "CRC32", hostname="vm", port=3306)
    return facts, {answer["statement"]: answer for answer in read["answers"]}


def described(answer: Rows, session: StatementSession) -> list[dict[str, Any]]:
    columns = []
    for payload in result_payloads(answer, session.encoding, session.status)[1 : len(answer.columns) + 1]:
        cursor = Cursor(payload)
        assert cursor.lenenc_bytes() == b"def"
        texts = [cursor.lenenc_bytes().decode(session.encoding.charset.codec) for _ in range(5)]
        assert cursor.uint(1) == 0x0C
        numbers = [cursor.uint(size) for size in (2, 4, 1, 2, 1)]
        names = ("schema", "table", "original_table", "name", "original_name")
        columns.append(
            dict(zip((*names, "charset", "length", "kind", "flags", "decimals"), texts + numbers, strict=True))
        )
    return columns


def test_four_servers_are_recorded() -> None:
    assert SERVERS == ["mariadb", "mariadb118", "mysql56", "mysql97"]


@pytest.mark.parametrize("name", SERVERS)
def test_every_recorded_answer_is_given(name: str) -> None:
    facts, answers = recording(name)
    session = StatementSession(facts, 42, user="repl", host="127.0.0.1")
    session.use_collation(UTF8)
    wrong = []
    for statement in SAME + SAME_SHAPE:
        expected = answers[statement]
        try:
            answer = answer_statement(statement, session, NOW)
        except StatementRefused as error:
            if error.number != expected["error"]:
                wrong.append(f"{statement}: {error.number}, not {expected['error']}")
            continue
        if isinstance(answer, Rows):
            if described(answer, session) != expected["columns"]:
                wrong.append(f"{statement}: {described(answer, session)}, not {expected['columns']}")
            values = [[None if value is None else str(value) for value in row] for row in answer.rows]
            if statement in SAME and values != expected["rows"]:
                wrong.append(f"{statement}: {values}, not {expected['rows']}")
        elif not isinstance(answer, Request) and (expected["columns"] or expected["error"]):
            wrong.append(f"{statement}: OK, not {expected}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", SERVERS)
def test_every_recorded_error_is_given(name: str) -> None:
    facts, answers = recording(name)
    session = StatementSession(facts, 42)
    session.use_collation(UTF8MB4)
    wrong = []
    for statement in ERRORS:
        expected = answers[statement]
        number = 0
        try:
            answer = answer_statement(statement, session, NOW)
            # Whether a connection is there to be killed, the relay says.
            number = expected["error"] if isinstance(answer, Request) else 0
        except StatementRefused as error:
            number = error.number
        if number != expected["error"]:
            wrong.append(f"{statement}: {number}, not {expected['error']} {expected['message']}")
    assert not wrong, "\n".join(wrong)
