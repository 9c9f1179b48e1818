"""Values of changed rows, each in a column of its own: the same as the images have as JSON."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from protocol.columns.codes.column_codes import FORM_BYTES, FORM_NUMBER, FORM_OTHER, FORM_TEXT
from tests.support.kernel_builds import KernelBuild, builds
from tests.support.kernel_columns import changed_rows

RECORDED = Path(__file__).resolve().parents[2] / "corpus" / "recorded"
BUILDS = pytest.mark.parametrize("build", builds(), ids=lambda build: str(build.name))
WANTED = ("operation", "table", "before", "after", "finding", "values")


def as_json(form: int, value: bytes | None) -> Any:
    """A value that stands alone as the image has it."""
    if value is None:
        return None
    if form == FORM_TEXT:
        return json.loads(b'"' + value + b'"')
    if form == FORM_BYTES:
        return {"base64": base64.b64encode(value).decode()}
    return json.loads(value)


def images(row: dict[str, Any], side: str) -> tuple[Any, Any]:
    """The image, and what its values come to."""
    image = json.loads(row[side]) if row[side] is not None else None
    shape = json.loads(row["shape"]) if row["shape"] is not None else []
    values = row[f"{side}_values"]
    made = {name: as_json(form, values[number]) for number, (name, form) in enumerate(shape)}
    if image is None:
        return None, None if not any(value is not None for value in made.values()) else made
    return image, {name: value for name, value in made.items() if name in image or value is not None}


@BUILDS
@pytest.mark.parametrize("name", ["mariadb", "mariadb118", "mariadb-compressed", "mysql56", "mysql97-gtid"])
def test_values_are_those_of_the_images(build: KernelBuild, name: str) -> None:
    data = (RECORDED / f"{name}.binlog").read_bytes()
    rows = changed_rows(build, data, WANTED).rows
    seen = 0
    for row in rows:
        if row["odd"] or not row["operation"]:
            continue
        for side in ("before", "after"):
            image, made = images(row, side)
            assert made == image
            seen += image is not None
    assert seen > 5
    assert changed_rows(build, data, WANTED[:-1]).rows == [{one: row[one] for one in WANTED[:-1]} for row in rows]


@BUILDS
def test_small_batches_and_cuts_change_no_value(build: KernelBuild) -> None:
    data = (RECORDED / "mariadb.binlog").read_bytes()
    whole = changed_rows(build, data, WANTED)
    small = changed_rows(build, data, WANTED, capacity=2, cuts=range(4, len(data), 700))
    assert small.batches > whole.batches

    def without_width(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**row, **{f"{side}_values": images(row, side)[1] for side in ("before", "after")}} for row in rows]

    assert without_width(small.rows) == without_width(whole.rows)


@BUILDS
def test_a_document_of_which_only_a_part_is_told_is_odd(build: KernelBuild) -> None:
    rows = changed_rows(build, (RECORDED / "mysql97-partial-json.binlog").read_bytes(), WANTED).rows
    partial = [row["odd"] for row in rows if row["after"] is not None and "$diffs" in row["after"]]
    assert partial and all(partial)
    assert any(not row["odd"] for row in rows)


@BUILDS
def test_forms_say_how_values_are_written(build: KernelBuild) -> None:
    rows = changed_rows(build, (RECORDED / "mysql56.binlog").read_bytes(), WANTED).rows
    forms = {form for row in rows if row["shape"] for _, form in json.loads(row["shape"])}
    assert forms <= {FORM_NUMBER, FORM_TEXT, FORM_BYTES, FORM_OTHER}
    assert {FORM_NUMBER, FORM_TEXT} <= forms
