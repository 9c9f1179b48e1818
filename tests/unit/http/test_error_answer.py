"""Errors as JSON, with the headers of their status."""

import json
from typing import Any

import pytest

from relay.archive.storage.archive_errors import ArchiveCorrupt
from relay.http.error_answer import error_answer
from relay.http.query_parameters import Unanswerable


def answered(error: Unanswerable) -> Any:
    body = error_answer(error).body
    assert isinstance(body, bytes)
    return json.loads(body)["error"]


def test_an_error_is_json_with_its_code_and_text() -> None:
    assert answered(Unanswerable(400, "parameter_wrong", "a <must> be 1")) == {
        "code": "parameter_wrong", "text": "a <must> be 1", "file": None, "offset": None, "advice": None,
    }  # fmt: skip


def test_an_error_that_reports_another_has_its_file_offset_and_advice() -> None:
    cause = ArchiveCorrupt("it is cut", "Repair it.", file="bin.000001", offset=4)
    answer = answered(Unanswerable(503, "file_damaged", cause=cause))
    assert answer["text"] == "it is cut (bin.000001, offset 4). Repair it"
    assert (answer["file"], answer["offset"], answer["advice"]) == ("bin.000001", 4, "Repair it.")


@pytest.mark.parametrize(
    ("status", "header"), [(401, ("WWW-Authenticate", "Bearer")), (405, ("Allow", "GET, HEAD")), (503, None)]
)
def test_an_error_has_the_headers_of_its_status(status: int, header: tuple[str, str] | None) -> None:
    response = error_answer(Unanswerable(status, "x", "y"))
    assert response.status == status
    assert header is None or header in response.headers.items()
    assert ("WWW-Authenticate" in response.headers) == (status == 401)


def test_markup_in_an_error_is_escaped() -> None:
    body = error_answer(Unanswerable(404, "x", "<b>&")).body
    assert isinstance(body, bytes)
    assert b"\\u003cb\\u003e\\u0026" in body
