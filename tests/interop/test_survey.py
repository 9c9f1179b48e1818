"""What the survey says is the same is the same on real servers: a sample of other expressions than those it was made of."""

from collections.abc import Sequence

import pytest

from protocol.sql.survey.survey_row import LOOSE, STRICT
from protocol.sql.survey.surveyed import PAIRS, SurveyKind, read_survey
from tests.conftest import ServerFactory
from tests.survey.asking import OPTIONS, Side
from tests.survey.comparing import Outcome, compare
from tests.survey.constructs import constructs_of
from tests.survey.expressions import Expression, sample
from tests.survey.running import SERVERS_BY_SERIES, version_of

pytestmark = pytest.mark.interop

_COUNT = 2000
_SEED = "1"
_BY_CHANCE = {"UNIX_TIMESTAMP()"}
"""5.6 gives 0 or 0.000000 for a text that is no date, by what it computed before."""


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_what_differs_has_a_row(servers: ServerFactory, source: str, target: str) -> None:
    survey = read_survey(source, target)

    def verdict(expression: Expression, modes: str) -> SurveyKind:
        arguments = [frozenset({one}) for one in expression.classes]
        return survey.verdict(expression.construct, arguments, strict=modes == STRICT).kind

    there, here = (
        Side(servers(SERVERS_BY_SERIES[series]).start(server_id=number, options=OPTIONS))
        for number, series in enumerate((source, target), 1)
    )
    here.take_settings(there)
    constructs = [one for one in constructs_of(version_of(there)) if one.name in survey.constructs - _BY_CHANCE]
    asked = list(sample(constructs, _COUNT, _SEED))
    without: set[tuple[str, str, str]] = set()
    for modes in (STRICT, LOOSE):
        expressions: Sequence[Expression] = [one for one in asked if verdict(one, modes) is SurveyKind.SAME]
        found = [one for one in compare(there, here, expressions, modes, 1) if one.kind != "same"]
        # again, alone: a server may give other digits beside other expressions
        for outcome in found:
            without |= {
                _told(one) for one in compare(there, here, [outcome.expression], modes, 1) if one.kind != "same"
            }
    assert without == set()


def _told(outcome: Outcome) -> tuple[str, str, str]:
    return outcome.expression.text, outcome.at_source, outcome.at_target
