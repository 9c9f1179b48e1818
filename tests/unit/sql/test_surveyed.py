"""The reader of the survey: the worst of what was tried, and nothing said of what was not."""

import pytest

from protocol.sql.survey.surveyed import PAIRS, Survey, SurveyKind, read_survey, surveyed
from protocol.sql.survey.value_class import ANY, TEXTS, ValueClass

C = ValueClass
_CLASSES = frozenset((C.NULL, C.INTEGER, C.TEXT_OTHER, C.TEXT_OFFSET, C.TEXT_NO_DATE))
_LINES = (
    "F()\t*, not text offset|text no date\t*\tsame\t\t\t\t",
    "F()\t*, text offset\t*\tdiffers\t\tF(1, 'a')\t1\t2",
    "F()\t*, text no date\tstrict\trefused\t1292\tF(1, 'b')\t1\terror 1292",
    "F()\t*, text no date\tloose\tsame\t\t\t\t",
    "G()\tinteger\t*\tdiffers\ttype\tG(1)\tinteger 1\ttext 1",
    "MANY()\t*\t*\tsame\t\t\t\t",
    "MANY()\t*, *\t*\tsame\t\t\t\t",
    "MANY()\t*, not text offset, …\t*\tsame\t\t\t\t".replace(
        "not text offset, …", "not text offset, not text offset, …"
    ),
    "MANY()\t*, text offset, *, …\t*\tdiffers\t\tMANY(1, 'o', 1)\t1\t2",
    "CLAUSE\t\t*\tdiffers\t\tSELECT 1\t1\t2",
)


_RESULTS = (
    "# construct, classes",
    "F()\tinteger, *\ttext other|text offset",
    "F()\tnull, *\tnull",
)


@pytest.fixture
def survey() -> Survey:
    return Survey(_LINES, _CLASSES, results=_RESULTS)


def only(*classes: ValueClass) -> frozenset[ValueClass]:
    return frozenset(classes)


def test_what_was_tried_as_the_same_is_the_same(survey: Survey) -> None:
    assert survey.verdict("F()", [only(C.INTEGER, C.NULL), only(C.TEXT_OTHER)], strict=True).kind is SurveyKind.SAME


def test_the_worst_of_all_combinations_counts(survey: Survey) -> None:
    verdict = survey.verdict("F()", [ANY, TEXTS], strict=False)
    assert verdict.kind is SurveyKind.DIFFERS
    assert (verdict.expression, verdict.at_source, verdict.at_target) == ("F(1, 'a')", "1", "2")
    assert verdict.when == "integer or null or text no date or text offset or text other, text offset"


def test_a_mode_has_rows_of_its_own(survey: Survey) -> None:
    arguments = [only(C.INTEGER), only(C.TEXT_NO_DATE)]
    refused = survey.verdict("F()", arguments, strict=True)
    assert (refused.kind, refused.error, refused.when) == (
        SurveyKind.REFUSED,
        1292,
        "integer, text no date, in strict mode",
    )
    assert survey.verdict("F()", arguments, strict=False).kind is SurveyKind.SAME


@pytest.mark.parametrize(
    ("construct", "arguments"),
    [
        ("UNKNOWN()", [ANY]),
        ("F()", [ANY]),
        ("F()", [ANY, frozenset()]),
        ("F()", [only(C.GEOMETRY), only(C.INTEGER)]),
        ("G()", [only(C.NULL)]),
    ],
)
def test_what_was_not_tried_is_not_the_same(
    survey: Survey, construct: str, arguments: list[frozenset[ValueClass]]
) -> None:
    assert survey.verdict(construct, arguments, strict=True).kind is SurveyKind.UNSURVEYED


def test_another_type_is_not_said_where_a_part_was_not_tried(survey: Survey) -> None:
    assert survey.verdict("G()", [ANY], strict=True).kind is SurveyKind.UNSURVEYED


def test_further_arguments_are_judged_by_selections_of_those_that_were_tried(survey: Survey) -> None:
    plain, offset = only(C.INTEGER), only(C.TEXT_OFFSET)
    assert survey.verdict("MANY()", [plain] * 2, strict=True).kind is SurveyKind.SAME
    assert survey.verdict("MANY()", [plain] * 7, strict=True).kind is SurveyKind.SAME
    assert survey.verdict("MANY()", [*[plain] * 5, offset, plain], strict=True).kind is SurveyKind.DIFFERS


def test_many_arguments_take_no_time(survey: Survey) -> None:
    arguments = [only(C.INTEGER)] * 20_000
    assert survey.verdict("MANY()", arguments, strict=True).kind is SurveyKind.SAME


def test_a_clause_has_no_arguments(survey: Survey) -> None:
    assert survey.verdict("CLAUSE", [], strict=True).kind is SurveyKind.DIFFERS
    assert "CLAUSE" in survey.constructs


@pytest.mark.parametrize(
    ("source", "target", "pair", "on_paper"),
    [
        ("5.6.24-log", "9.7.4", ("mysql-5.6", "mysql-9.7"), False),
        ("5.7.44", "9.7.4", ("mysql-5.6", "mysql-9.7"), True),
        ("5.6.24", "8.4.2", ("mysql-5.6", "mysql-9.7"), True),
        ("9.7.4", "5.7", ("mysql-9.7", "mysql-5.6"), True),
        ("10.11.19-MariaDB-log", "9.7.4", ("mariadb-10.11", "mysql-9.7"), False),
        ("10.4.34-MariaDB", "9.7.4", ("mariadb-10.11", "mysql-9.7"), True),
        ("11.8.9-MariaDB", "9.7.4", ("mariadb-11.8", "mysql-9.7"), False),
        ("11.4.1-MariaDB", "9.7.4", ("mariadb-11.8", "mysql-9.7"), True),
    ],
)
def test_versions_between_have_the_nearest_survey_on_paper(
    source: str, target: str, pair: tuple[str, str], on_paper: bool
) -> None:
    survey = surveyed(source, target)
    assert survey.on_paper is on_paper
    assert survey.rows("+") == read_survey(*pair).rows("+") != ()


def test_a_pair_that_was_not_surveyed_has_no_rows() -> None:
    survey = surveyed("9.7.4", "9.7.4")
    assert not survey.constructs
    assert survey.verdict("+", [ANY, ANY], strict=True).kind is SurveyKind.UNSURVEYED


def test_the_classes_of_a_result_are_those_of_its_arguments(survey: Survey) -> None:
    assert survey.results("F()", [only(C.NULL), ANY]) == {C.NULL}
    assert survey.results("F()", [only(C.NULL, C.INTEGER), ANY]) == {C.NULL, C.TEXT_OTHER, C.TEXT_OFFSET}


@pytest.mark.parametrize(
    ("construct", "arguments"),
    [("F()", [only(C.NULL, C.TEXT_OTHER), ANY]), ("F()", [ANY]), ("G()", [ANY]), ("F()", [frozenset(), ANY])],
)
def test_a_result_that_was_not_tried_may_have_any_class(
    survey: Survey, construct: str, arguments: list[frozenset[ValueClass]]
) -> None:
    assert survey.results(construct, arguments) == _CLASSES


@pytest.mark.parametrize("pair", PAIRS)
def test_rows_never_overlap(pair: tuple[str, str]) -> None:
    survey = read_survey(*pair)
    for construct in survey.constructs:
        rows = survey.rows(construct)
        for at, row in enumerate(rows):
            for other in rows[at + 1 :]:
                for strict in (True, False):
                    assert not (row.common(row.arguments, strict) and other.common(row.arguments, strict)), (row, other)


def test_a_longer_list_than_was_tried_is_judged_by_its_first_value_and_each_other() -> None:
    lines = ("IN\t*, not text offset\t*\tsame\t\t\t\t", "IN\t*, text offset\t*\tdiffers\t\t(1 IN ('o'))\t1\t2")
    survey = Survey((*lines, "F()\t*, *\t*\tsame\t\t\t\t"), _CLASSES)
    integer, offset = only(C.INTEGER), only(C.TEXT_OFFSET)
    assert survey.verdict("IN", [integer, integer, integer], strict=True).kind is SurveyKind.SAME
    assert survey.verdict("IN", [integer, integer, offset], strict=True).kind is SurveyKind.DIFFERS
    assert survey.verdict("IN", [offset, integer, integer], strict=True).kind is SurveyKind.SAME
    assert survey.verdict("F()", [integer, integer, integer], strict=True).kind is SurveyKind.UNSURVEYED


def test_a_list_differs_as_its_pairs_do() -> None:
    lines = (
        "IN\t*, not text offset\t*\tsame\t\t\t\t",
        "IN\t*, text offset\t*\tdiffers\t\t(1 IN ('o'))\t1\t2",
        "IN\t*, *, *, …\t*\tdiffers\ttype\t(1 IN (1, 1))\tinteger 1\ttext 1",
    )
    survey = Survey(lines, _CLASSES)
    integer, offset = only(C.INTEGER), only(C.TEXT_OFFSET)
    assert survey.verdict("IN", [integer, integer, integer], strict=True).only_type
    assert not survey.verdict("IN", [integer, integer, offset], strict=True).only_type


def test_an_error_that_literals_exclude_hides_no_other_one() -> None:
    survey = Survey(
        (
            "DIV\ttext other, integer\tstrict\trefused\t1292\t('a' DIV 5)\t0\terror 1292",
            "DIV\tinteger, integer\tstrict\trefused\t1365\t(1 DIV 0)\tNULL\terror 1365",
        ),
        _CLASSES,
    )
    wanted = [only(C.INTEGER, C.TEXT_OTHER), only(C.INTEGER)]
    assert survey.verdict("DIV", wanted, True, 1365).error == 1292
    assert survey.verdict("DIV", wanted[1:] * 2, True, 1365).kind is SurveyKind.SAME
    assert survey.verdict("DIV", wanted[1:] * 2, True).error == 1365
