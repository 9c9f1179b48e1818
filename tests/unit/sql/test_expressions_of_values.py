"""Values of expressions: their arguments and literals."""

import pytest

from protocol.sql.expressions.constructs import Operand
from protocol.sql.lexer import UnsupportedSyntax
from protocol.sql.survey.value_class import ValueClass
from tests.unit.sql.test_expressions import body, read, used


@pytest.mark.parametrize(
    ("call", "construct"),
    [
        ("IFNULL(id, (id + 1) * 2)", "IFNULL() INT? , INT?"),
        ("IF(id = 1, (SELECT 1), 0)", "IF() integer , integer , integer"),
        ("COALESCE(id, (SELECT n FROM u))", "COALESCE() INT? , decimal"),
        ("CONCAT(s, (id))", "CONCAT() TEXT? , INT?"),
    ],
)
def test_an_argument_after_a_comma_may_be_in_brackets(call: str, construct: str) -> None:
    assert used(f"SELECT {call} FROM t")[-1] == construct
    assert construct.partition(" ")[0] in body(f"FOR EACH ROW SET NEW.s = {call}")


@pytest.mark.parametrize(
    ("literal", "classes"),
    [
        ("DATE '2020-01-31'", "date"),
        ("TIMESTAMP '2020-01-31 10:00:00'", "datetime"),
        ("TIME '10:00:00'", "time"),
        ("{d '2020-01-31'}", "date"),
        ("{ts '2020-01-31 10:00:00'}", "datetime"),
        ("{t '10:00:00'}", "time"),
    ],
)
def test_a_literal_of_a_valid_time_is_no_construct(literal: str, classes: str) -> None:
    assert used(f"SELECT {literal} = 1") == [f"= {classes} , integer"]


@pytest.mark.parametrize(
    "literal", ["DATE '2020-02-31'", "DATE '2020-01-31 10:00:00'", "TIMESTAMP '2020-01-31'", "TIME '900:00:00'"]
)
def test_a_literal_of_another_text_is_judged(literal: str) -> None:
    assert used(f"SELECT {literal}")[0].startswith(f"{literal.partition(' ')[0]} literal ")


@pytest.mark.parametrize("literal", ["{d '2020-02-31'}", "{x '2020-01-31'}", "{d 5}", "{d '2020-01-31'", "{"])
def test_other_literals_in_braces_are_not_guessed(literal: str) -> None:
    with pytest.raises(UnsupportedSyntax):
        read(f"SELECT {literal}")


@pytest.mark.parametrize(
    ("expression", "is_judged"),
    [
        ("NOW() + INTERVAL 5 DAY", False),
        ("NOW() + INTERVAL -5 DAY", False),
        ("NOW() + INTERVAL @n HOUR_MINUTE", True),
        ("ADDDATE(NOW(), 5)", False),
        ("ADDDATE(NOW(), @n)", True),
        ("ADDDATE(NOW(), NAME_CONST('n', -9999999999))", True),
        ("ADDDATE(NOW(), -9999999999)", True),
    ],
)
def test_only_a_short_number_is_a_small_interval(expression: str, is_judged: bool) -> None:
    variables = {"n": Operand(frozenset((ValueClass.INTEGER,)), is_literal=True)}
    assert (len(used(f"SELECT {expression}", variables=variables)) > 1) is is_judged


@pytest.mark.parametrize(
    ("argument", "is_judged"),
    [
        ("RAND() * 999999999", False),
        ("1 + RAND() * (10 - 5)", False),
        ("rand", True),
        ("RAND() * rand", True),
        ("RAND() * 999999999 * 999999999", True),
    ],
)
def test_only_calls_of_rand_with_one_factor_are_rounded_alike(argument: str, is_judged: bool) -> None:
    assert any(name.startswith("FLOOR()") for name in used(f"SELECT FLOOR({argument}) FROM x")) is is_judged


@pytest.mark.parametrize(
    ("divisor", "error"),
    [
        ("5", 1365),
        ("0.5", 1365),
        ("-5", 1365),
        ("0", 0),
        ("0.00", 0),
        ("(0)", 0),
        ("'0'", 0),
        ("0x00", 0),
        ("0e5", 0),
        ("1e-999", 0),
        ("@x", 0),
        ("NAME_CONST('v', 0)", 0),
    ],
)
def test_only_a_number_excludes_a_division_by_zero(divisor: str, error: int) -> None:
    variables = {"x": Operand(frozenset((ValueClass.INTEGER,)), is_literal=True)}
    (made,) = read(f"DELETE FROM t WHERE id % {divisor} = 1", variables=variables).used[:1]
    assert (made.name, made.cannot_fail) == ("%", error)


@pytest.mark.parametrize(
    ("call", "is_judged"),
    [
        ("ST_GeomFromText('PO' 'INT(1 1)')", False),
        ("ST_GeomFromText('x' 'POINT(1 1)')", True),
        ("UNHEX('4' '1')", False),
        ("UNHEX('zz' '41')", True),
        ("UNHEX(X'5A')", True),
    ],
)
def test_strings_side_by_side_are_one_text(call: str, is_judged: bool) -> None:
    assert (len(used(f"SELECT {call}")) > 0) is is_judged


def test_strings_after_a_character_set_are_one_text() -> None:
    assert used("SELECT 1 = _utf8 '5' 'x'") == ["= integer , text other"]


@pytest.mark.parametrize("item", ["_id 'x'", "_id x", "_id b"])
def test_a_name_is_no_character_set_by_its_first_letter(item: str) -> None:
    (made,) = read(f"DELETE FROM t WHERE id IN (SELECT {item} FROM v)").used
    assert made.unknown == {("d", "v")}


@pytest.mark.parametrize(
    ("literal", "classes"), [("_latin1 X'3132'", "text number"), ("_utf8mb3 b'1'", None), ("_binary 'x'", "bytes")]
)
def test_a_character_set_belongs_to_the_literal_after_it(literal: str, classes: str | None) -> None:
    (made,) = used(f"SELECT 1 = {literal}")
    assert classes is None or made == f"= integer , {classes}"
