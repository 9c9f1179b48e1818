"""A survey in which everything is the same but some constructs, for tests of rules."""

from protocol.sql.expressions.construct_names import ACCEPTED_NAMES, accepted_name
from protocol.sql.server_functions import SERVER_FUNCTIONS
from protocol.sql.survey.surveyed import Survey
from protocol.sql.survey.value_class import ValueClass

_DATES = "date|datetime|date zero"
_BEFORE = "trigger BEFORE INSERT, NULL into NOT NULL"
_IMPLICIT = "trigger BEFORE INSERT, implicit default"
_WITH_LETTERS = ("unary -", "user variable assigned in a query", _BEFORE, _IMPLICIT, "GROUP BY without ORDER BY")
_OTHERWISE = {
    "REGEXP": [("*, *", "*", "differs", "")],
    "GROUP BY without ORDER BY": [("", "*", "differs", "")],
    _IMPLICIT: [("", "loose", "differs", ""), ("", "strict", "same", "")],
    _BEFORE: [("", "loose", "differs", ""), ("", "strict", "same", "")],
    "CAST AS UNSIGNED": [
        ("text other", "strict", "refused", "1292"),
        ("text other", "loose", "same", ""),
        ("not text other", "*", "same", ""),
    ],
    "BETWEEN": [
        (f"{_DATES}, *, text no date", "*", "differs", ""),
        (f"{_DATES}, *, not text no date", "*", "same", ""),
        (f"not {_DATES}, *, *", "*", "same", ""),
    ],
    **{
        sign: [
            (f"{_DATES}, text no date|text empty|text other", "*", "refused", "1525"),
            (f"{_DATES}, not text no date|text empty|text other", "*", "same", ""),
            (f"not {_DATES}, *", "*", "same", ""),
        ]
        for sign in ("=", "<", "<=", ">", ">=", "<>", "<=>")
    },
    **{
        f"{verb} DATETIME": [
            ("text offset", "loose", "differs", ""),
            ("text offset", "strict", "same", ""),
            ("not text offset", "*", "same", ""),
        ]
        for verb in ("store", "convert")
    },
}


def small_survey() -> Survey:
    """Return it."""
    lines = []
    known = {accepted_name(name): name for name in _WITH_LETTERS}
    for name in sorted(ACCEPTED_NAMES):
        construct = known.get(name, name.upper())
        if construct in SERVER_FUNCTIONS:
            construct += "()"
        elif name.startswith(("store ", "convert ")):
            verb, _, kind = name.partition(" ")
            construct = f"{verb} {kind.upper()}"
        rows = _OTHERWISE.get(
            construct,
            [("", "*", "same", ""), ("*", "*", "same", ""), ("*, *", "*", "same", ""), ("*, *, *, …", "*", "same", "")],
        )
        lines += ["\t".join((construct, *row, "an expression", "1", "2")) for row in rows]
    classes = frozenset(one for one in ValueClass if one is not ValueClass.JSON)
    return Survey(lines, classes)
